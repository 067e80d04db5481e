// `treering perf`: the command line, the list of cases, the table and JSON, and what ranks share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "perf/bench/cases.hpp"
#include "perf/bench/control.hpp"
#include "perf/bench/failures.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A command line's arguments, changed by `change`.
template <class Change>
Options understood(Change change) {
  Arguments arguments;
  arguments.collective = "all_reduce";
  change(arguments);
  return understand(arguments);
}

template <class Change>
void expect_refused(Change change, const std::string& part) {
  try {
    understood(change);
    ADD_FAILURE() << "accepted, but should say: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(PerfOptions, SizesFollowFromWhatIsGiven) {
  const Options usual = understood([](Arguments&) {});
  EXPECT_EQ(usual.min_bytes, 8u);
  EXPECT_EQ(usual.max_bytes, 16u << 20);
  EXPECT_EQ(understood([](Arguments& a) { a.minbytes = "1G"; }).max_bytes, 1u << 30);
  EXPECT_EQ(understood([](Arguments& a) { a.maxbytes = "4"; }).min_bytes, 4u);
  EXPECT_EQ(understood([](Arguments& a) { a.minbytes = "3k"; }).min_bytes, 3072u);
}

TEST(PerfOptions, NamesOfNcclTestsAreUnderstood) {
  const Options o =
      understood([](Arguments& a) { a.type = "half", a.op = "all", a.algorithm = "ring"; });
  EXPECT_THAT(o.types, ElementsAre(DataType::f16));
  EXPECT_EQ(o.ops.size(), 9u);
  EXPECT_EQ(o.algorithm, Algorithm::ring);
  EXPECT_EQ(o.wire, std::nullopt);
  EXPECT_EQ(understood([](Arguments& a) { a.wire = "ll"; }).wire, WireType::ll);
  EXPECT_EQ(understood([](Arguments& a) { a.type = "all"; }).types.size(), 15u);
  EXPECT_TRUE(understood([](Arguments& a) { a.collective = "all"; }).all());
}

TEST(PerfOptions, NonsenseIsRefusedByName) {
  expect_refused([](Arguments& a) { a.collective = "all_redcue"; }, "reduce_scatter");
  expect_refused([](Arguments& a) { a.minbytes = "8", a.maxbytes = "4"; }, "--maxbytes 4");
  expect_refused([](Arguments& a) { a.ranks = 0; }, "--ranks is 0");
  expect_refused([](Arguments& a) { a.factor = "1"; }, "--stepfactor is '1'");
  expect_refused([](Arguments& a) { a.factor = "2x"; }, "--stepfactor is '2x'");
  expect_refused([](Arguments& a) { a.stepbytes = "0"; }, "--stepbytes");
  expect_refused([](Arguments& a) { a.type = "f33"; }, "bf16");
  expect_refused([](Arguments& a) { a.op = "mean"; }, "avg");
  expect_refused([](Arguments& a) { a.op = "band", a.type = "half"; }, "bit_and does not apply");
  expect_refused([](Arguments& a) { a.algorithm = "star"; }, "ring");
  expect_refused([](Arguments& a) { a.wire = "LL"; }, "simple, ll");
  expect_refused([](Arguments& a) { a.root = "2"; }, "0 to 1");
  expect_refused([](Arguments& a) { a.iterations = 0; }, "--iters is 0");
  expect_refused([](Arguments& a) { a.minbytes = "-1"; }, "-1");
}

TEST(PerfOptions, WhatOneCollectiveLacksIsRefused) {
  expect_refused([](Arguments& a) { a.algorithm = "direct"; }, "there are: two_shot");
  expect_refused([](Arguments& a) { a.collective = "barrier", a.wire = "ll"; },
                 "there are: simple");
  expect_refused([](Arguments& a) { a.algorithm = "ring", a.deterministic = 1; },
                 "adds on the way");
  EXPECT_EQ(understood([](Arguments& a) { a.collective = "all", a.algorithm = "tree"; }).algorithm,
            Algorithm::tree);
}

std::vector<std::size_t> sizes_of(const Options& o) {
  std::vector<std::size_t> sizes;
  for (const Case& c : make_cases(o)) sizes.push_back(c.bytes);
  return sizes;
}

TEST(PerfCases, SizesGrowByFactorOrStepAndEndWithoutOverflow) {
  EXPECT_THAT(sizes_of(understood([](Arguments& a) { a.maxbytes = "600"; })),
              ElementsAre(8, 64, 512));
  EXPECT_THAT(sizes_of(understood([](Arguments& a) { a.maxbytes = "24", a.stepbytes = "8"; })),
              ElementsAre(8, 16, 24));
  const auto from_zero = [](Arguments& a) {
    a.type = "u8", a.minbytes = "0", a.maxbytes = "8", a.factor = "2";
  };
  EXPECT_THAT(sizes_of(understood(from_zero)), ElementsAre(0, 1, 2, 4, 8));
  const auto huge = [](Arguments& a) {
    a.type = "u8", a.minbytes = "4611686018427387904", a.maxbytes = "18446744073709551615",
    a.factor = "2";
  };
  EXPECT_THAT(sizes_of(understood(huge)), ElementsAre(std::size_t{1} << 62, std::size_t{1} << 63));
}

TEST(PerfCases, CountsAreRoundedDownToWholeShares) {
  const auto of = [](const char* collective) {
    return make_cases(understood([&](Arguments& a) {
             a.collective = collective, a.ranks = 3, a.minbytes = a.maxbytes = "1001";
           }))
        .at(0);
  };
  EXPECT_EQ(of("all_reduce").count, 250u);
  EXPECT_EQ(of("all_reduce").bytes, 1000u);
  for (const char* shared : {"reduce_scatter", "all_gather", "all_to_all"}) {
    EXPECT_EQ(of(shared).count, 83u) << shared;
    EXPECT_EQ(of(shared).bytes, 83u * 3 * 4) << shared;
  }
  EXPECT_EQ(of("barrier").bytes, 0u);
}

TEST(PerfCases, OperatorsMultiplyOnlyWhatReduces) {
  const Options o = understood([](Arguments& a) {
    a.collective = "all", a.op = "all", a.type = "all", a.minbytes = a.maxbytes = "64";
  });
  const std::size_t pairs = 8 * 9 + 7 + 6 * 6;  // integers, bool, floats
  EXPECT_EQ(make_cases(o).size(), 4 * pairs + 7 * 15 + 1);
}

TEST(PerfCases, BusBandwidthFollowsNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 1), 0);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bandwidth(2'000'000'000, 0.5), 4);
  EXPECT_DOUBLE_EQ(bandwidth(0, 0.5), 0);
}

Row sample_row() {
  Row row;
  row.what = {Collective::all_reduce, DataType::bf16, ReduceOp::max, 1024, 2048};
  row.out_of_place = {true, 2e-6, 0, 0, Algorithm::two_shot, true};
  row.in_place = {true, 4e-6, 3, 5, Algorithm::two_shot, false};
  return row;
}

TEST(PerfReport, ARowHasTheColumnsOfNcclTests) {
  const auto words = [](const Row& row, bool checked) {
    std::istringstream line(format_row(row, 4, checked));
    return std::vector<std::string>{std::istream_iterator<std::string>(line), {}};
  };
  EXPECT_THAT(words(sample_row(), true),
              ElementsAre("2048", "1024", "bf16", "max", "-1", "two_shot", "direct/staged",  //
                          "2.00", "1.02", "1.54", "0", "4.00", "0.51", "0.77", "3"));
  Row barrier;
  barrier.what = {Collective::barrier, DataType::u8, ReduceOp::sum, 0, 0};
  barrier.out_of_place = {true, 123.456e-6, 0, 0, Algorithm::dissemination, true};
  EXPECT_THAT(words(barrier, false),
              ElementsAre("0", "0", "none", "none", "-1", "dissemination", "direct", "123.5",
                          "0.00", "0.00", "N/A", "-", "-", "-", "-"));
}

TEST(PerfReport, OverLlNothingIsDirectOrStaged) {
  Row row = sample_row();
  row.out_of_place.wire = row.in_place.wire = WireType::ll;
  EXPECT_EQ(wire_text(row), "ll");
}

TEST(PerfReport, SumsAndMeans) {
  const std::vector<Row> rows{sample_row(), sample_row()};
  EXPECT_EQ(wrong_values(rows), 6u);
  EXPECT_EQ(broken_guards(rows), 10u);
  EXPECT_DOUBLE_EQ(average_bus_bandwidth(rows, 4), (2048 / 2e3 + 2048 / 4e3) / 2 * 1.5);
  EXPECT_EQ(average_bus_bandwidth({}, 4), 0);
}

TEST(PerfReport, JsonIsOneObjectWithRows) {
  const Options o = understood([](Arguments& a) { a.ranks = 4; });
  const auto json = nlohmann::json::parse(to_json(o, {{1, "host, 2 cores"}}, {sample_row()}));
  EXPECT_EQ(json["ranks"], 4);
  EXPECT_EQ(json["mode"], "procs");
  EXPECT_EQ(json["device"], "host, 2 cores");
  const auto& row = json["rows"][0];
  EXPECT_EQ(row["collective"], "all_reduce");
  EXPECT_EQ(row["ranks"], 4);
  EXPECT_EQ(row["size"], 2048);
  EXPECT_EQ(row["count"], 1024);
  EXPECT_EQ(row["type"], "bf16");
  EXPECT_EQ(row["redop"], "max");
  EXPECT_EQ(row["root"], -1);
  EXPECT_EQ(row["algorithm"], "two_shot");
  EXPECT_EQ(row["wire"], "direct");
  EXPECT_EQ(row["registered"], true);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["time_us"], 2);
  EXPECT_DOUBLE_EQ(row["out_of_place"]["algbw_GBps"], 1.024);
  EXPECT_DOUBLE_EQ(row["in_place"]["busbw_GBps"], 0.768);
  EXPECT_EQ(row["in_place"]["wrong"], 3);
}

TEST(PerfReport, FilesAreReplacedAsAWhole) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("treering-perf-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string file = folder / "x.json";
  check_writable(file);
  write_atomically(file, "old and long");
  write_atomically(file, "new");
  std::string contents;
  std::getline(std::ifstream(file), contents);
  EXPECT_EQ(contents, "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "nothing else is left";
  EXPECT_THROW(check_writable(folder / "none" / "x.json"), Error);
  EXPECT_THROW(check_writable(folder), Error);
  std::filesystem::remove_all(folder);
}

TEST(PerfFailures, CausesHideConsequencesAndEqualTextsAreJoined) {
  Failures failures;
  EXPECT_TRUE(failures.empty());
  failures.add(2, "peer lost", true);
  EXPECT_EQ(failures.text(), "Rank 2: peer lost");
  failures.add(3, "no memory", false);
  failures.add(1, "no memory", false);
  EXPECT_EQ(failures.text(), "Ranks 1, 3: no memory");
  EXPECT_THAT(failures.ranks(), ElementsAre(1, 3));
}

TEST(PerfControl, CombinesTheSlowestTimeAndTheSumsRoundAfterRound) {
  constexpr int ranks = 5, rounds = 200;
  Control control(ranks);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int me = 0; me < ranks; ++me)
    threads.emplace_back([&, me] {
      for (int round = 0; round < rounds; ++round) {
        Share mine;
        mine.seconds = (me + round) % ranks + 1;
        mine.wrong = static_cast<std::uint64_t>(me + round);
        mine.direct = round % 2 == 0 || me != round % ranks;
        const Share all = control.combine(me, mine);
        const auto sum = static_cast<std::uint64_t>(ranks * round + ranks * (ranks - 1) / 2);
        wrong += all.seconds != ranks || all.wrong != sum || all.direct != (round % 2 == 0);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(PerfControl, StopEndsABarrierThatNobodyElseReaches) {
  Control control(2);
  std::thread other([&] { EXPECT_THROW(control.barrier(), Stopped); });
  control.stop();
  other.join();
}

TEST(PerfControl, KnowsWhoIsMissing) {
  Control control(3);
  control.come(1, 2);
  EXPECT_EQ(control.missing(0), 0);
  EXPECT_EQ(control.missing(1), 2);
  EXPECT_EQ(control.missing(3), 3);
}

}  // namespace
}  // namespace treering::perf
