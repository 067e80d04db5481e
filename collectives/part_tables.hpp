#pragma once

// Memory in which kernels find the uneven parts of calls, which may be many and not yet done.

#include <cstddef>

#include "kernels/exec/device.hpp"

namespace treering {

/// Tables of two chunks for each rank, handed out in turn. Not thread-safe.
class PartTables {
 public:
  PartTables(Device& device, int size)
      : device_(device),
        size_(static_cast<std::size_t>(size)),
        memory_(static_cast<Chunk*>(device.allocate_control(calls * 2 * size_ * sizeof(Chunk)))) {}
  PartTables(const PartTables&) = delete;
  PartTables& operator=(const PartTables&) = delete;
  ~PartTables() { device_.deallocate_control(memory_); }

  /// The next call's input and output chunks. `latest`: done when all earlier calls are; waited for before a
  /// table is used again.
  struct Table {
    Chunk *input, *output;
  };
  Table next(Event& latest) {
    if (used_ == calls) {
      latest.synchronize();
      used_ = 0;
    }
    Chunk* table = memory_ + used_++ * 2 * size_;
    return {table, table + size_};
  }

 private:
  static constexpr std::size_t calls = 16;
  Device& device_;
  std::size_t size_;
  Chunk* memory_;
  std::size_t used_ = 0;
};

}  // namespace treering
