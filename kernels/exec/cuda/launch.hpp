#pragma once

// What host code and kernels agree on about a launch. Several ranks of a process that share a GPU
// run in one grid, because only the blocks of one (cooperative) grid are sure to run at the same
// time:
//
//     grid │ block 0 │ block 1 │ block 2 │ block 3 │ block 4 │ block 5 │
//     rank │         0         │         1         │         2         │    blocks = 2

#include <cstddef>
#include <cstdint>

#include "kernels/wire/view.hpp"

namespace treering {

/// Threads of a block. 12 warps with up to four 16-byte loads each keep more than the 10 KB in
/// flight that an SM needs for its share of the bandwidth, and leave 168 registers to each thread:
/// with 16 warps, and so 128, kernels for sm_100 spill.
inline constexpr int block_threads = 384;
inline constexpr std::size_t shared_alignment = 16;

/// One rank's share of a grid.
struct TeamMember {
  const RankView* view;  ///< in device memory
  CallArgs args;
};

/// Most ranks in a grid. The team travels as the kernel's parameter, by value, so that nothing
/// needs to be copied or kept alive, also in a captured graph; the parameters of every GPU hold 4
/// KiB.
inline constexpr int team_size = 40;

struct Team {
  std::int32_t blocks;  ///< of each rank
  TeamMember members[team_size];
};
static_assert(sizeof(Team) <= 4096);

}  // namespace treering
