// `treering perf`: the test data, the command line, the table and JSON, and what ranks share.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "perf/bench/cases.hpp"
#include "perf/bench/control.hpp"
#include "perf/bench/failures.hpp"
#include "perf/bench/options.hpp"
#include "perf/bench/report.hpp"
#include "perf/patterns.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr DataType floats[] = {DataType::f16, DataType::bf16, DataType::f32, DataType::f64};
constexpr ReduceOp every_op[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                 ReduceOp::avg};
constexpr int worlds[] = {1, 2, 3, 4, 5, 7, 8, 16, 64, 65, 300};
constexpr std::size_t elements = 40;

std::string describe(const Pattern& p) {
  return std::string(name(p.collective)) + " " + name(p.type) + " " + name(p.op) +
         " n=" + std::to_string(p.ranks) + " seed=" + std::to_string(p.seed);
}

/// What the bits of a float mean: a decoder that knows nothing of the encoder under test.
long double value_of(std::uint64_t bits, DataType type) {
  if (type == DataType::f64) return std::bit_cast<double>(bits);
  if (type == DataType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const int fraction = type == DataType::f16 ? 10 : 7, exponents = type == DataType::f16 ? 31 : 255;
  const int bias = exponents / 2;
  const int exponent = static_cast<int>(bits >> fraction) & exponents;
  const auto digits = static_cast<long double>(bits & ((1u << fraction) - 1));
  const long double magnitude =
      exponent == 0 ? std::ldexp(digits, 1 - bias - fraction)
                    : std::ldexp(digits + (1 << fraction), exponent - bias - fraction);
  return bits >> 15 ? -magnitude : magnitude;
}

/// True if the type holds this value exactly, as a normal number or zero.
bool representable(long double value, DataType type) {
  const int digits = type == DataType::f16    ? 11
                     : type == DataType::bf16 ? 8
                     : type == DataType::f32  ? 24
                                              : 53;
  const int least = type == DataType::f16 ? -14 : -126, most = type == DataType::f16 ? 15 : 127;
  if (value == 0) return true;
  int exponent = 0;
  const long double scaled = std::ldexp(std::frexp(value, &exponent), digits);
  return scaled == std::trunc(scaled) && exponent - 1 >= least && exponent - 1 <= most;
}

/// Orders in which algorithms may combine ranks: each start of a ring, backwards, and at random.
std::vector<std::vector<int>> orders(int ranks, unsigned seed) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> all;
  std::mt19937 random(seed);
  all.push_back(order);
  all.emplace_back(order.rbegin(), order.rend());
  std::rotate(order.begin(), order.begin() + ranks / 2, order.end());
  all.push_back(order);
  std::shuffle(order.begin(), order.end(), random);
  all.push_back(order);
  return all;
}

TEST(Patterns, EveryPartialSumAndProductOfFloatsIsRepresentableInEveryOrder) {
  for (const DataType type : floats)
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod})
      for (const int ranks : worlds) {
        const Pattern p{Collective::all_reduce, type, op, ranks, elements, 7};
        for (const auto& order : orders(ranks, 1))
          for (std::size_t i = 0; i < elements; ++i) {
            long double sum = value_of(input_bits(p, order[0], i), type);
            for (std::size_t r = 1; r < order.size(); ++r) {
              const long double next = value_of(input_bits(p, order[r], i), type);
              sum = op == ReduceOp::sum ? sum + next : sum * next;
              ASSERT_TRUE(representable(sum, type)) << describe(p) << " element " << i;
            }
            ASSERT_EQ(sum, value_of(expected_bits(p, 0, i), type))
                << describe(p) << " element " << i;
          }
      }
}

TEST(Patterns, AnAverageOfFloatsIsTheExactSumDividedAndRoundedToNearestEven) {
  for (const DataType type : floats)
    for (const int ranks : worlds) {
      const Pattern p{Collective::all_reduce, type, ReduceOp::avg, ranks, elements, 11};
      for (std::size_t i = 0; i < elements; ++i) {
        long double sum = 0;
        for (int r = 0; r < ranks; ++r) sum += value_of(input_bits(p, r, i), type);
        const std::uint64_t bits = expected_bits(p, 0, i);
        if (type == DataType::f64) {
          ASSERT_EQ(std::bit_cast<double>(bits), static_cast<double>(sum) / ranks) << describe(p);
          continue;
        }
        const float quotient = static_cast<float>(sum) / static_cast<float>(ranks);
        const long double miss = std::abs(value_of(bits, type) - quotient);
        if (type == DataType::f32 || (bits & 0x7fff) == 0) {
          ASSERT_EQ(miss, 0) << describe(p) << " element " << i;
          continue;
        }
        for (const std::uint64_t other : {bits - 1, bits + 1}) {
          const long double by = std::abs(value_of(other, type) - quotient);
          ASSERT_TRUE(miss < by || (miss == by && bits % 2 == 0))
              << describe(p) << " element " << i;
        }
      }
    }
}

template <class T>
void check_integers(DataType type) {
  const auto as = [](std::uint64_t bits) { return static_cast<T>(bits); };
  for (const ReduceOp op : every_op)
    for (const int ranks : worlds) {
      const Pattern p{Collective::all_reduce, type, op, ranks, elements, 13};
      for (std::size_t i = 0; i < elements; ++i) {
        T result = as(input_bits(p, 0, i));
        for (int r = 1; r < ranks; ++r) {
          const T next = as(input_bits(p, r, i));
          const auto a = static_cast<std::uint64_t>(result), b = static_cast<std::uint64_t>(next);
          result = op == ReduceOp::prod  ? as(a * b)
                   : op == ReduceOp::min ? std::min(result, next)
                   : op == ReduceOp::max ? std::max(result, next)
                                         : as(a + b);
        }
        if (op == ReduceOp::avg) {
          if constexpr (std::is_signed_v<T>)
            result = static_cast<T>(static_cast<std::int64_t>(result) / ranks);
          else
            result = static_cast<T>(result / static_cast<std::uint64_t>(ranks));
        }
        ASSERT_EQ(result, as(expected_bits(p, 0, i))) << describe(p) << " element " << i;
        ASSERT_EQ(expected_bits(p, 0, i) >> (8 * sizeof(T) - 1) >> 1, 0u) << "bits beyond the type";
      }
    }
}

TEST(Patterns, IntegersWrap) {
  check_integers<std::uint8_t>(DataType::u8);
  check_integers<std::int8_t>(DataType::i8);
  check_integers<std::int32_t>(DataType::i32);
  check_integers<std::uint32_t>(DataType::u32);
  check_integers<std::int64_t>(DataType::i64);
  check_integers<std::uint64_t>(DataType::u64);
}

TEST(Patterns, MinimumAndMaximumOfFloatsAreFiniteInputs) {
  for (const DataType type : floats)
    for (const int ranks : worlds)
      for (std::size_t i = 0; i < elements; ++i) {
        const Pattern min{Collective::all_reduce, type, ReduceOp::min, ranks, elements, 17};
        Pattern max = min;
        max.op = ReduceOp::max;
        long double least = value_of(input_bits(min, 0, i), type),
                    most = value_of(input_bits(max, 0, i), type);
        for (int r = 1; r < ranks; ++r) {
          const long double x = value_of(input_bits(min, r, i), type);
          ASSERT_TRUE(std::isfinite(x));
          least = std::min(least, x);
          most = std::max(most, x);
        }
        ASSERT_EQ(value_of(expected_bits(min, 0, i), type), least) << describe(min);
        ASSERT_EQ(value_of(expected_bits(max, 0, i), type), most) << describe(max);
      }
}

TEST(Patterns, AnExtremumIsOneOfTheInputsBitForBit) {
  for (const DataType type : floats)
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      const Pattern p{Collective::all_reduce, type, op, 5, 1000, 19};
      for (std::size_t i = 0; i < p.count; ++i) {
        std::set<std::uint64_t> inputs;
        for (int r = 0; r < p.ranks; ++r) inputs.insert(input_bits(p, r, i));
        ASSERT_EQ(inputs.count(expected_bits(p, 0, i)), 1u) << describe(p) << " element " << i;
      }
    }
}

TEST(Patterns, MovesFollowTheDefinitionOfEachCollective) {
  constexpr std::size_t count = 5;
  for (const int ranks : {1, 2, 3, 8}) {
    const Pattern gather{Collective::all_gather, DataType::u64, ReduceOp::sum, ranks, count, 23};
    const Pattern exchange{Collective::all_to_all, DataType::u64, ReduceOp::sum, ranks, count, 23};
    const Pattern scatter{
        Collective::reduce_scatter, DataType::u64, ReduceOp::sum, ranks, count, 23};
    for (int me = 0; me < ranks; ++me) {
      const auto self = static_cast<std::size_t>(me);
      for (int from = 0; from < ranks; ++from)
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at = static_cast<std::size_t>(from) * count + i;
          ASSERT_EQ(expected_bits(gather, me, at), input_bits(gather, from, i));
          ASSERT_EQ(expected_bits(exchange, me, at), input_bits(exchange, from, self * count + i));
        }
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t sum = 0;
        for (int r = 0; r < ranks; ++r) sum += input_bits(scatter, r, self * count + i);
        ASSERT_EQ(expected_bits(scatter, me, i), sum);
      }
    }
  }
}

TEST(Patterns, ElementsOfWideTypesAreAllDifferentAndSeedsMatter) {
  const Pattern p{Collective::all_gather, DataType::u64, ReduceOp::sum, 8, 1000, 29};
  Pattern other = p;
  other.seed = 30;
  std::set<std::uint64_t> seen;
  for (int r = 0; r < p.ranks; ++r)
    for (std::size_t i = 0; i < p.count; ++i) {
      seen.insert(input_bits(p, r, i));
      seen.insert(input_bits(other, r, i));
    }
  EXPECT_EQ(seen.size(), 2u * 8 * 1000);
}

TEST(Patterns, ManyRanksStillMakeResultsThatVary) {
  for (const DataType type : floats)
    for (const ReduceOp op : every_op) {
      const Pattern p{Collective::all_reduce, type, op, 300, 200, 31};
      std::set<std::uint64_t> results;
      for (std::size_t i = 0; i < p.count; ++i) results.insert(expected_bits(p, 0, i));
      EXPECT_GE(results.size(), 20u) << describe(p);
    }
}

TEST(Patterns, FillsAgreeWithSingleElementsAtAnyAlignmentAndBeginning) {
  const std::size_t far = (std::size_t{1} << 33) + 5;
  for (int t = 0; t < data_types; ++t)
    for (int c = 0; c < collectives - 1; ++c) {
      const auto type = static_cast<DataType>(t);
      const Pattern p{static_cast<Collective>(c), type, ReduceOp::sum, 3, far + 100, 37};
      for (const std::size_t begin : {std::size_t{0}, std::size_t{3}, far}) {
        constexpr std::size_t count = 17;
        std::vector<std::byte> memory(count * size_of(type) + 3, std::byte{0x55});
        fill_input(p, 2, begin, count, memory.data() + 1);
        EXPECT_EQ(count_changed(p, 2, begin, count, memory.data() + 1), 0u);
        fill_expected(p, 2, begin, count, memory.data() + 1);
        EXPECT_EQ(count_wrong(p, 2, begin, count, memory.data() + 1), 0u);
        EXPECT_EQ(memory.front(), std::byte{0x55});
        EXPECT_EQ(memory.back(), std::byte{0x55});
        for (std::size_t i = 0; i < count; ++i) {
          std::uint64_t bits = 0;
          std::memcpy(&bits, memory.data() + 1 + i * size_of(type), size_of(type));
          ASSERT_EQ(bits, expected_bits(p, 2, begin + i))
              << describe(p) << " element " << begin + i;
        }
      }
    }
}

TEST(Patterns, ASingleWrongBitIsOneWrongElement) {
  const Pattern p{Collective::all_reduce, DataType::bf16, ReduceOp::sum, 4, 100, 41};
  std::vector<std::byte> memory(200);
  fill_expected(p, 0, 0, 100, memory.data());
  memory[1] ^= std::byte{0x80};
  EXPECT_EQ(count_wrong(p, 0, 0, 100, memory.data()), 1u);
  memory[0] ^= std::byte{1};
  EXPECT_EQ(count_wrong(p, 0, 0, 100, memory.data()), 1u);
  memory[199] ^= std::byte{1};
  EXPECT_EQ(count_wrong(p, 0, 0, 100, memory.data()), 2u);
}

TEST(Patterns, SizesAndPlacesOfBuffers) {
  const auto of = [](Collective c) { return Pattern{c, DataType::f32, ReduceOp::sum, 3, 10, 1}; };
  EXPECT_EQ(input_elements(of(Collective::all_reduce)), 10u);
  EXPECT_EQ(output_elements(of(Collective::all_reduce)), 10u);
  EXPECT_EQ(input_elements(of(Collective::reduce_scatter)), 30u);
  EXPECT_EQ(output_elements(of(Collective::reduce_scatter)), 10u);
  EXPECT_EQ(input_elements(of(Collective::all_gather)), 10u);
  EXPECT_EQ(output_elements(of(Collective::all_gather)), 30u);
  EXPECT_EQ(input_elements(of(Collective::all_to_all)), 30u);
  EXPECT_EQ(output_elements(of(Collective::all_to_all)), 30u);
  EXPECT_EQ(input_elements(of(Collective::barrier)), 0u);
  EXPECT_EQ(in_place_input(of(Collective::all_gather), 2), 20u);
  EXPECT_EQ(in_place_output(of(Collective::all_gather), 2), 0u);
  EXPECT_EQ(in_place_input(of(Collective::reduce_scatter), 2), 0u);
  EXPECT_EQ(in_place_output(of(Collective::reduce_scatter), 2), 20u);
  EXPECT_EQ(in_place_output(of(Collective::all_to_all), 2), 0u);
}

}  // namespace

namespace perf {
namespace {

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
  EXPECT_EQ(o.ops.size(), 5u);
  EXPECT_EQ(o.algorithm, Algorithm::ring);
  EXPECT_EQ(understood([](Arguments& a) { a.type = "all"; }).types.size(), 10u);
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
  expect_refused([](Arguments& a) { a.algorithm = "star"; }, "ring");
  expect_refused([](Arguments& a) { a.root = "2"; }, "0 to 1");
  expect_refused([](Arguments& a) { a.iterations = 0; }, "--iters is 0");
  expect_refused([](Arguments& a) { a.minbytes = "-1"; }, "-1");
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
  EXPECT_EQ(make_cases(o).size(), 2u * 10 * 5 + 2 * 10 + 1);
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
  Control control(ranks, UniqueId::create());
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
  const UniqueId id = UniqueId::create();
  Control control(2, id);
  EXPECT_EQ(control.id().text(), id.text());
  std::thread other([&] { EXPECT_THROW(control.barrier(), Stopped); });
  control.stop();
  other.join();
}

TEST(PerfControl, KnowsWhoIsMissing) {
  Control control(3, UniqueId::create());
  control.come(1, 2);
  EXPECT_EQ(control.missing(0), 0);
  EXPECT_EQ(control.missing(1), 2);
  EXPECT_EQ(control.missing(3), 3);
}

}  // namespace
}  // namespace perf
}  // namespace treering
