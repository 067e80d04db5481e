#pragma once

// What ranks tell one another at start.

#include <array>
#include <cstdint>

#include "kernels/exec/device.hpp"
#include "transport/mapped/process.hpp"

namespace treering {

/// Settings that all ranks must have alike.
struct Agreement {
  std::uint32_t version;
  Execution execution;
  std::int32_t size, channels, blocks;
  std::uint64_t inbox, slot;
  std::int32_t algorithm;  ///< -1: automatic
  std::int32_t wire;       ///< -1: automatic
  bool deterministic;
  std::int32_t registered;  ///< -1: not said
  std::uint64_t choice;     ///< a hash of TREERING_CHOICE
};

/// Throws Error{mismatch} that names rank and setting, if `theirs`, of that rank, differs from rank 0's.
void require_same(const Agreement& first, const Agreement& theirs, int rank);

/// What a rank tells all others at start. Travels as bytes.
struct Facts {
  Agreement agreement;
  ProcessIdentity process;
  std::uint64_t arena_bytes;
  std::uint64_t board_offset;   ///< in the process's arena
  std::uint64_t inbox_address;  ///< for ranks of the same process
  std::uint64_t inbox_offset;   ///< in the allocation that `inbox` names, or the arena
  MemoryHandle inbox;
  std::array<char, 64> device;  ///< Device::identity(), cut short
};

}  // namespace treering
