#pragma once

#include <cstdint>

#include "tests/ranks/team.hpp"

namespace treering::test {

/// Every kernel on `size` ranks, with short and long messages, in place and out of place, by blocks
/// of `threads` threads that interleave as `seed` says. Adds failures of the test as check() does.
void run_every_kernel(int size, int threads, std::uint64_t seed);

}  // namespace treering::test
