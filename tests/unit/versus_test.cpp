// `treering perf --versus`: from the times of rounds to what is reported, and the names of peers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "perf/bench/report.hpp"
#include "perf/versus/catalog.hpp"
#include "perf/versus/statistics.hpp"
#include "perf/versus/table.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(VersusStatistics, BothProbesDecideOnTheClass) {
  EXPECT_EQ(classify(0.11e-6, 0.179e-6), Distance::near);
  EXPECT_EQ(classify(0.18e-6, 0.37e-6), Distance::far) << "the limit itself is far";
  EXPECT_EQ(classify(0.11e-6, 0.37e-6), std::nullopt);
  EXPECT_EQ(classify(0.37e-6, 0.11e-6), std::nullopt);
}

TEST(VersusStatistics, QuantilesLieBetweenValues) {
  EXPECT_DOUBLE_EQ(quantile({4}, 0.75), 4);
  EXPECT_DOUBLE_EQ(quantile({9, 1, 5}, 0.5), 5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  const Spread s = spread({5, 3, 1, 2, 4});
  EXPECT_DOUBLE_EQ(s.low, 2);
  EXPECT_DOUBLE_EQ(s.middle, 3);
  EXPECT_DOUBLE_EQ(s.high, 4);
}

/// Three near rounds, two far ones, one that was neither.
std::vector<Round> some_rounds() {
  const auto near = Distance::near, far = Distance::far;
  return {{near, 2, {6, 8}}, {far, 4, {4, 6}},  {near, 4, {8, 6}},
          {{}, 100, {1, 1}}, {near, 1, {4, 9}}, {far, 8, {40, 6}}};
}

TEST(VersusStatistics, RatiosAreTakenRoundByRound) {
  const auto near = summarize(some_rounds(), {"a", "b"}, Distance::near);
  ASSERT_TRUE(near.has_value());
  EXPECT_EQ(near->rounds, 3);
  EXPECT_EQ(near->dropped, 1);
  EXPECT_DOUBLE_EQ(near->seconds, 2);
  ASSERT_EQ(near->peers.size(), 2u);
  EXPECT_EQ(near->peers[0].name, "a");
  EXPECT_DOUBLE_EQ(near->peers[0].seconds, 6);
  EXPECT_DOUBLE_EQ(near->peers[0].ratio, 3) << "of 3, 2 and 4";
  EXPECT_DOUBLE_EQ(near->peers[1].seconds, 8);
  EXPECT_DOUBLE_EQ(near->peers[1].ratio, 4) << "of 4, 1.5 and 9";
  EXPECT_EQ(near->best_peer, "a");
  EXPECT_DOUBLE_EQ(near->ratio.middle, 3) << "the best of each round: 3, 1.5, 4";
  EXPECT_DOUBLE_EQ(near->ratio.low, 2.25);
  EXPECT_DOUBLE_EQ(near->ratio.high, 3.5);
}

TEST(VersusStatistics, AClassWithFewRoundsIsUnmeasured) {
  EXPECT_FALSE(summarize(some_rounds(), {"a", "b"}, Distance::far).has_value());
  EXPECT_EQ(rounds_in(some_rounds(), Distance::far), 2);
  EXPECT_FALSE(summarize({}, {}, Distance::near).has_value());
}

TEST(VersusStatistics, APeerThatMissedARoundDoesNotCount) {
  std::vector<Round> rounds = some_rounds();
  rounds[4].peers[0].reset();
  const auto near = summarize(rounds, {"a", "b"}, Distance::near);
  ASSERT_EQ(near->peers.size(), 1u);
  EXPECT_EQ(near->best_peer, "b");
  EXPECT_DOUBLE_EQ(near->ratio.middle, 4);
  rounds[0].peers[1].reset();
  const auto alone = summarize(rounds, {"a", "b"}, Distance::near);
  EXPECT_TRUE(alone->peers.empty());
  EXPECT_EQ(alone->best_peer, "");
  EXPECT_DOUBLE_EQ(alone->seconds, 2);
}

TEST(VersusStatistics, IterationsFillTheirSlice) {
  EXPECT_EQ(iterations_within(1, 0.25, 20), 4);
  EXPECT_EQ(iterations_within(1, 0.3, 20), 3);
  EXPECT_EQ(iterations_within(1, 1e-9, 20), 20);
  EXPECT_EQ(iterations_within(1, 0, 20), 20);
  EXPECT_EQ(iterations_within(1, 5, 20), 1) << "once at least";
}

TEST(VersusPeers, UnknownNamesAreRefusedWithThoseThereAre) {
  EXPECT_THAT(parse_peers("gloo,mpich,gloo"), ElementsAre("gloo", "mpich"));
  EXPECT_THAT(parse_peers("all"),
              ElementsAre("openmpi", "mpich", "intelmpi", "oneccl", "gloo", "nccl"));
  try {
    parse_peers("gloo,lammpi");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_STREQ(error.what(),
                 "--versus does not know 'lammpi'; there are: openmpi, mpich, intelmpi, oneccl, "
                 "gloo, nccl. Or all.");
  }
}

TEST(VersusPeers, AMissingOneSaysWhatToDo) {
  EXPECT_EQ(launcher_of("gloo", "no/such/folder"), "");
  EXPECT_THAT(why_missing("gloo"), HasSubstr("./dev setup --peers"));
  EXPECT_THAT(why_missing("nccl"), HasSubstr("GPU"));
}

Row compared_row() {
  Row row;
  row.what = {Collective::all_reduce, DataType::f32, ReduceOp::sum, 512, 2048};
  row.out_of_place = {true, 2e-6, 0, 0, Algorithm::two_shot, true};
  row.comparison =
      Comparison{Distance::far,  7,   2, 2e-6, {{"mpich", 8e-6, 4}, {"gloo", 100e-6, 50}}, "mpich",
                 {3.5, 4, 4.25}, 1e-6};
  return row;
}

TEST(VersusReport, ARowNamesTheBestAndHasATimeForEachPeer) {
  std::istringstream line(format_versus_row(compared_row(), 4, {"openmpi", "mpich", "gloo"}));
  const std::vector<std::string> words{std::istream_iterator<std::string>(line), {}};
  EXPECT_THAT(words,
              ElementsAre("2048", "f32", "sum", "far", "7", "two_shot", "direct", "2.00", "1.54",
                          "1.00", "mpich", "4.00", "3.50-4.25", "-", "8.00", "100.0"));
}

TEST(VersusReport, JsonHasTheFieldsOfTheComparison) {
  Options options;
  options.ranks = 4;
  PeersReport report;
  report.versions["mpich"] = "5";
  report.unavailable["nccl"] = "no GPU";
  report.unmeasured.push_back({compared_row().what, Distance::near, 1});
  const auto json = nlohmann::json::parse(to_json(options, {}, {compared_row()}, &report));
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["distance"], "far");
  EXPECT_EQ(row["rounds"], 7);
  EXPECT_EQ(row["dropped_rounds"], 2);
  EXPECT_EQ(row["best_peer"], "mpich");
  EXPECT_DOUBLE_EQ(row["ratio"], 4);
  EXPECT_DOUBLE_EQ(row["ratio_low"], 3.5);
  EXPECT_DOUBLE_EQ(row["ratio_high"], 4.25);
  EXPECT_DOUBLE_EQ(row["peers"]["gloo"]["ratio"], 50);
  EXPECT_DOUBLE_EQ(row["peers"]["mpich"]["time_us"], 8);
  EXPECT_DOUBLE_EQ(row["memcpy_bound_us"], 1);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["time_us"], 2);
  EXPECT_EQ(json["peer_versions"]["mpich"], "5");
  EXPECT_EQ(json["peers_unavailable"]["nccl"], "no GPU");
  EXPECT_EQ(json["unmeasured"][0]["distance"], "near");
  EXPECT_EQ(json["unmeasured"][0]["rounds"], 1);
  const auto plain = nlohmann::json::parse(to_json(options, {}, {}));
  EXPECT_FALSE(plain.contains("unmeasured"));
}

}  // namespace
}  // namespace treering::perf
