// Pairwise coverings as in tests/ranks, of fewer ranks and shorter arrays, thread by thread, with all the malice of a
// GPU. Seeds choose the cases, and how threads interleave.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "tests/ranks/cases.hpp"
#include "tests/simt/scenario.hpp"

namespace treering::test {
namespace {

constexpr int sizes[] = {1, 2, 3, 4, 5, 8};
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t seeds = 1;  // ThreadSanitizer is slow
#else
constexpr std::uint64_t seeds = 4;
#endif

class SimtCovering : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { device(); }  // which configures the engine itself
  void TearDown() override { simt::configure({}); }
};

TEST_P(SimtCovering, EveryPairOfValuesIsExact) {
  const CallSpace calls({std::begin(sizes), std::end(sizes)}, 1000);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto rows = pairwise_covering(calls.space(), seed);
    simt::configure({.seed = seed,
                     .threads = seed % 2 == 1 ? 32 : 5,
                     .patience = std::chrono::milliseconds(200),
                     .malice = all_malice(GetParam())});
    Team team(GetParam());
    int done = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (calls.ranks_of(rows[i]) != team.size()) continue;
      check(team, calls.case_of(rows[i], i));
      if (HasFailure()) return;
      ++done;
    }
    fmt::print("{} of {} cases, seed {}\n", done, rows.size(), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SimtCovering, testing::ValuesIn(sizes));

}  // namespace
}  // namespace treering::test
