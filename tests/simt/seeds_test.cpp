// Every kernel, thread by thread, under many interleavings.

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/exec/simt/engine.hpp"
#include "tests/simt/scenario.hpp"

namespace treering::test {
namespace {

// ThreadSanitizer is slow, and dies at some 8000 threads.
#ifdef __SANITIZE_THREAD__
constexpr int budget = 15;
#else
constexpr int budget = 60;
#endif

/// More ranks take longer, and have more interleavings within one run.
std::uint64_t seeds_for(int size) {
  return static_cast<std::uint64_t>(std::clamp(budget / size, 4, 20));
}

void expect_exact(int size, std::uint64_t seeds, const simt::Malice& malice) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "scheduler's seed " << seed);
    const int threads = seed % 4 == 0 ? 1 : seed % 4 == 1 ? 3 : 32;
    run_every_kernel(size, threads, seed, malice);
    if (testing::Test::HasFailure()) return;
  }
}

class Seeds : public testing::TestWithParam<int> {};

TEST_P(Seeds, EveryKernelIsExact) { expect_exact(GetParam(), seeds_for(GetParam()) / 2, {}); }
TEST_P(Seeds, EveryKernelIsExactDespiteMalice) {
  expect_exact(GetParam(), seeds_for(GetParam()), all_malice(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Ranks, Seeds, testing::Values(1, 2, 3, 4, 5, 7, 8));
#ifndef __SANITIZE_THREAD__
INSTANTIATE_TEST_SUITE_P(ManyRanks, Seeds, testing::Values(16));
#endif

TEST(Seed, Replays) {
  const auto trace_of = [](std::uint64_t seed) {
    run_every_kernel(3, 8, seed, all_malice(3));
    return simt::trace();
  };
  const std::uint64_t first = trace_of(11);
  EXPECT_EQ(trace_of(11), first);
  EXPECT_NE(trace_of(12), first);
}

}  // namespace
}  // namespace treering::test
