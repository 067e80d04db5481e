#pragma once

// Put with signal, a transport's whole duty: put bytes at an address of another rank; then, and not
// before they are visible there, make a flag of that rank at least a value. On one wire puts stay
// in order.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/exec/atomics.hpp"

namespace treering {

class Put {
 public:
  virtual ~Put() = default;
  virtual void put(std::byte* remote, const std::byte* local, std::size_t bytes) = 0;
  virtual void signal(std::uint64_t& remote_flag, std::uint64_t value) = 0;
};

/// For memory that is mapped into this process: plain stores, and a release.
class MappedPut final : public Put {
 public:
  void put(std::byte* remote, const std::byte* local, std::size_t bytes) override {
    std::memcpy(remote, local, bytes);
  }
  void signal(std::uint64_t& remote_flag, std::uint64_t value) override {
    store_release(remote_flag, value);
  }
};

}  // namespace treering
