// `treering tune` and `treering perf --forced-choices`: from measured times to costs and verdicts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perf/bench/forced_choices.hpp"
#include "perf/tune/fit.hpp"
#include "perf/tune/measure.hpp"

namespace treering::perf {
namespace {

using ::testing::ElementsAre;
using enum Algorithm;

Result result(std::vector<double> seconds, Algorithm algorithm = ring) {
  return {std::move(seconds), algorithm, WireType::simple};
}

TEST(Tune, FindsFromWhereOnOneWayIsFaster) {
  const auto from = [](std::vector<Comparison> all) { return crossover(all); };
  EXPECT_EQ(from({{64, 1.2}, {128, 0.9}, {256, 0.8}}), 128U);
  EXPECT_EQ(from({{64, 0.5}, {128, 1.1}, {256, 0.8}}), 256U) << "not at 64 alone";
  EXPECT_EQ(from({{64, 0.5}, {128, 0.5}}), 64U);
  EXPECT_EQ(from({{64, 0.5}, {128, 0.98}}), UINT64_MAX) << "that is noise";
  EXPECT_EQ(from({}), UINT64_MAX);
}

TEST(Tune, GivesSecondsToKnotsAndForbidsTheRest) {
  const Cost cost = cost_from(std::vector{3e-6, 2e-6, 4e-6});
  EXPECT_EQ(cost[0], 3000);
  EXPECT_EQ(cost[1], 3000) << "more bytes do not take less time";
  EXPECT_EQ(cost[2], 4000);
  for (std::size_t i = 3; i < cost.size(); ++i) EXPECT_EQ(cost[i], longest_ns) << i;
}

TEST(Tune, TakesThePoliciesThatAreFastest) {
  const std::vector<Match> matches = policy_matches(2);
  Costs costs = default_costs(Machine::cpu, 2, 2);
  std::vector<std::vector<Result>> results;
  for (const Match& match : matches) {
    std::vector<Result> of;
    for (std::size_t i = 0; i < match.contenders.size(); ++i) {
      const bool streaming = match.contenders[i].choice.ends_with("streaming");
      const bool wins = match.what.bytes >= 4 << 20 ? streaming : !streaming;
      const bool is_store = match.contenders.size() == 2;
      of.push_back(result({is_store ? (wins ? 1.0 : 2.0) : (i == 1 ? 1.0 : 3.0)}));
    }
    results.push_back(of);
  }
  apply_policies(costs, matches, results);
  EXPECT_EQ(costs.chunk_bytes, 64U << 10);
  EXPECT_EQ(costs.streaming_bytes, 4U << 20);
  EXPECT_EQ(costs.slot_streaming_bytes, UINT64_MAX);
}

/// Each way gets the times of its own contender, at its own size.
TEST(Tune, GivesEveryWayItsTimes) {
  for (const int ranks : {2, 3, 8}) {
    Costs costs = default_costs(Machine::cpu, ranks, 2);
    const std::vector<Match> matches = way_matches(costs, ranks);
    const auto nanoseconds = [](const Match& match, const Contender& c) {
      return static_cast<double>(match.what.bytes) +
             1000 * static_cast<int>(match.what.collective) + 100 * static_cast<int>(*c.algorithm) +
             10 * static_cast<int>(*c.wire) + (c.registered ? 1 : 0);
    };
    std::vector<std::vector<Result>> results;
    for (const Match& match : matches) {
      EXPECT_GT(match.what.count, 0U);
      std::vector<Result> of;
      for (const Contender& c : match.contenders)
        of.push_back(result({nanoseconds(match, c) * 1e-9}));
      results.push_back(of);
    }
    apply_ways(costs, matches, results);
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const Match& first = *std::ranges::find_if(
          matches, [&](const Match& m) { return m.what.collective == ways[w].collective; });
      const bool ll = ways[w].path == Path::ll;
      const Contender expected{.algorithm = ways[w].algorithm,
                               .wire = ll ? WireType::ll : WireType::simple,
                               .registered = ways[w].path == Path::direct};
      EXPECT_FLOAT_EQ(costs.of[w][0], static_cast<float>(nanoseconds(first, expected))) << w;
      EXPECT_EQ(costs.of[w].back() == longest_ns, ll) << w;
    }
  }
}

TEST(ForcedChoices, AreJudgedInTheRoundsInWhichTheyWereNotChosen) {
  // In even rounds the third looks best; in odd rounds the first is 1.5 times it.
  const Verdict verdict =
      judge({result({4, 3, 4, 3}, tree), result({3, 1, 3, 1}), result({1, 2, 1, 2}, one_shot)});
  EXPECT_EQ(verdict.best, 2U);
  EXPECT_EQ(verdict.ratio, 1.5);
}

TEST(ForcedChoices, TheSameWayIsNoWorse) {
  const Verdict verdict = judge({result({4, 4, 4, 4}), result({1, 1, 1, 1})});
  EXPECT_EQ(verdict.best, 1U);
  EXPECT_EQ(verdict.ratio, 1);
}

TEST(ForcedChoices, AreAllThatThereAre) {
  Options options;
  options.collectives = {Collective::all_reduce, Collective::all_gather_v, Collective::gather,
                         Collective::barrier};
  options.min_bytes = options.max_bytes = 1024;
  options.ops = {ReduceOp::sum};
  options.types = {DataType::f32};
  options.registered = false;
  const auto matches = forced_choice_matches(options, make_cases(options));
  ASSERT_EQ(matches.size(), 2U);
  EXPECT_EQ(matches[0].contenders.size(), 1U + 4 * 2);
  EXPECT_EQ(matches[1].contenders.size(), 1U + 2);
  EXPECT_FALSE(matches[0].contenders[0].algorithm);
  for (const Contender& c : matches[0].contenders) EXPECT_FALSE(c.registered);
  options.min_bytes = options.max_bytes = 2 << 20;
  EXPECT_EQ(forced_choice_matches(options, make_cases(options))[0].contenders.size(), 1U + 4);
}

TEST(Contest, RatiosAreThoseOfRounds) {
  EXPECT_EQ(ratio(result({1, 10, 100}), result({2, 10, 50})), 1);
  EXPECT_EQ(ratio(result({4, 9, 4, 9}), result({2, 3, 2, 3}), 1, 2), 3);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({}), 0);
  const Result r = Contest::result_of(Message::with_text(Message::Kind::row, "1.5e-06 2 3"));
  EXPECT_THAT(r.seconds, ElementsAre(1.5e-6, 2, 3));
}

}  // namespace
}  // namespace treering::perf
