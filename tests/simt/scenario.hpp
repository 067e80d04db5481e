#pragma once

#include <cstdint>

#include "kernels/exec/simt/malice.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {

/// All the malice of a GPU that has just enough slots for `size` ranks, and two hardware queues.
simt::Malice all_malice(int size);

/// Every kernel on `size` ranks, with short and long messages, in place and out of place, by blocks
/// of `threads` threads that interleave as `seed` says. Adds failures of the test as check() does.
void run_every_kernel(int size, int threads, std::uint64_t seed, const simt::Malice& = {});

}  // namespace treering::test
