#pragma once

// What both rigs share.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace treering::gpu_check {

/// How a kernel is launched.
struct Shape {
  int blocks = 1, threads = 32;
  bool cooperative = false;    ///< all blocks are promised to run at the same time
  bool remote_domain = false;  ///< memory sync domain
};

/// How a flag is raised: a release store, or a fence and a relaxed store.
enum class Raise { release, fence };

/// How memory is shared with another process.
enum class Sharing { legacy_ipc, vmm };

/// What the other process needs for that; the descriptor travels beside it.
struct Shared {
  std::array<std::byte, 64> handle{};
  std::uint64_t bytes = 0;
  int descriptor = -1;
};

/// Sixteen bytes that are copied as one.
struct alignas(16) Pack {
  std::uint64_t low, high;
};

/// Texts and whole numbers in a row: nvcc cannot take fmt's.
template <class... Parts>
std::string join(const Parts&... parts) {
  const auto word = [](const auto& part) {
    if constexpr (requires { std::to_string(part); })
      return std::to_string(part);
    else
      return std::string(part);
  };
  return (std::string() + ... + word(parts));
}

}  // namespace treering::gpu_check
