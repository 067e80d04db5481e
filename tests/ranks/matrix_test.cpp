// Every collective × algorithm × wire × type × operator × awkward size × number of ranks × placement × root, exactly:
// every two of them together, or all combinations with TREERING_TEST_ALL=1.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "plan/choice.hpp"
#include "tests/ranks/cases.hpp"

namespace treering::test {
namespace {

class Matrix : public testing::TestWithParam<int> {};

TEST_P(Matrix, EveryPairOfValuesIsExact) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const CallSpace calls({std::begin(team_sizes), std::end(team_sizes)});
    const std::vector<Row> rows = pairwise_covering(calls.space(), seed);
    Team team(GetParam());
    std::size_t done = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (calls.ranks_of(rows[i]) != team.size()) continue;
      check(team, calls.case_of(rows[i], seed * 10'000 + i));
      ++done;
    }
    fmt::print("{} of the {} cases of a covering are for {} ranks (seed {})\n", done, rows.size(),
               team.size(), seed);
  }
}

/// Sums that must be rounded: all ranks get the same bits, and those that fold all ranks at once get the
/// bits of a sum in rank order.
TEST_P(Matrix, RoundedSumsHaveTheSameBits) {
  Team team(GetParam());
  const auto n = static_cast<std::size_t>(team.size());
  constexpr std::size_t count = 1001;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<std::vector<float>> in(n, std::vector<float>(count)), out(n, in[0]);
  for (auto& rank : in)
    for (float& x : rank) x = numbers(random);
  std::vector<float> in_rank_order = in[0];
  for (std::size_t r = 1; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i) in_rank_order[i] += in[r][i];

  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    SCOPED_TRACE(name(algorithm));
    team.each([&](Communicator& comm, CallOptions how) {
      how.algorithm = algorithm;
      const auto r = static_cast<std::size_t>(comm.rank());
      comm.all_reduce(in[r].data(), out[r].data(), count, DataType::f32, ReduceOp::sum, how);
    });
    for (std::size_t r = 1; r < n; ++r) EXPECT_EQ(out[r], out[0]) << "rank " << r;
    if (folds_at_once(Collective::all_reduce, algorithm)) {
      EXPECT_EQ(out[0], in_rank_order);
    }
  }
}

TEST_P(Matrix, BarriersBetweenCalls) {
  Team team(GetParam());
  for (int i = 0; i < 50; ++i) {
    check(team, {.pattern = {Collective::barrier, DataType::u8, ReduceOp::sum, team.size(), 0, 1}});
    check(team, {.pattern = {Collective::all_reduce, DataType::i32, ReduceOp::sum, team.size(), 5,
                             static_cast<std::uint64_t>(i)}});
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Matrix, testing::ValuesIn(team_sizes));

TEST(MatrixOfAll, EveryCombinationIsExact) {
  if (!everything()) GTEST_SKIP() << "it takes hours: ./dev test --all";
  using namespace std::chrono;
  for (const int size : team_sizes) {
    const CallSpace calls({size});
    std::uint64_t all = 0, done = 0;
    for_each_row(calls.space(), [&](const Row&) { ++all; });
    Team team(size);
    auto told = steady_clock::now();
    for_each_row(calls.space(), [&](const Row& row) {
      if (HasFailure()) return;
      check(team, calls.case_of(row, ++done));
      if (done < all && steady_clock::now() - told < 10s) return;
      told = steady_clock::now();
      fmt::print("{} of {} cases among {} ranks\n", done, all, size);
      std::fflush(stdout);
    });
  }
}

}  // namespace
}  // namespace treering::test
