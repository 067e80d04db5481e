// The test data of perf/patterns: exact whatever the order, and right by other arithmetic than its
// own.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perf/patterns.hpp"

namespace treering {
namespace {

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

TEST(Patterns, FloatsComeWithBothSigns) {
  for (const DataType type : floats)
    for (const ReduceOp op : every_op) {
      const Pattern p{Collective::all_reduce, type, op, 4, 200, 33};
      std::size_t negative = 0;
      for (std::size_t i = 0; i < p.count; ++i) negative += value_of(input_bits(p, 1, i), type) < 0;
      EXPECT_GT(negative, p.count / 4) << describe(p);
      EXPECT_LT(negative, p.count * 3 / 4) << describe(p);
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

/// A collective's buffers: elements of rank 2's input and output, and their places in place, for three ranks, 10
/// elements and root 1.
struct Shape {
  Collective collective;
  std::size_t input, output, in_place_input, in_place_output;
};

TEST(Patterns, SizesAndPlacesOfBuffers) {
  const auto expect = [](const Shape& shape, int rank) {
    Pattern p{shape.collective, DataType::f32, ReduceOp::sum, 3, 10, 1};
    p.root = 1;
    SCOPED_TRACE(testing::Message() << name(p.collective) << " rank " << rank);
    EXPECT_EQ(input_elements(p, rank), shape.input);
    EXPECT_EQ(output_elements(p, rank), shape.output);
    EXPECT_EQ(in_place_input(p, rank), shape.in_place_input);
    EXPECT_EQ(in_place_output(p, rank), shape.in_place_output);
  };
  expect({Collective::all_reduce, 10, 10, 0, 0}, 2);
  expect({Collective::reduce_scatter, 30, 10, 0, 20}, 2);
  expect({Collective::all_gather, 10, 30, 20, 0}, 2);
  expect({Collective::all_to_all, 30, 30, 0, 0}, 2);
  expect({Collective::barrier, 0, 0, 0, 0}, 2);
  expect({Collective::broadcast, 10, 10, 0, 0}, 1);
  expect({Collective::broadcast, 0, 10, 0, 0}, 2);
  expect({Collective::reduce, 10, 10, 0, 0}, 1);
  expect({Collective::reduce, 10, 0, 0, 0}, 2);
  expect({Collective::gather, 10, 30, 10, 0}, 1);
  expect({Collective::gather, 10, 0, 0, 0}, 2);
  expect({Collective::scatter, 30, 10, 0, 10}, 1);
  expect({Collective::scatter, 0, 10, 0, 0}, 2);
}

std::size_t sum(const std::vector<std::size_t>& counts, int first) {
  return std::accumulate(counts.begin(), counts.begin() + first, std::size_t{0});
}

TEST(Patterns, UnevenPartsAgreeBetweenRanks) {
  for (const bool symmetric : {false, true}) {
    Pattern p{Collective::all_to_all_v, DataType::f32, ReduceOp::sum, 5, 100, 9};
    p.symmetric = symmetric;
    std::set<std::size_t> different;
    for (int from = 0; from < 5; ++from)
      for (int to = 0; to < 5; ++to) {
        const auto sent = sent_counts(p, from)[static_cast<std::size_t>(to)];
        EXPECT_EQ(sent, received_counts(p, to)[static_cast<std::size_t>(from)]);
        EXPECT_LE(sent, 200u);
        if (symmetric) {
          EXPECT_EQ(sent, sent_counts(p, to)[static_cast<std::size_t>(from)]);
        }
        different.insert(sent);
      }
    EXPECT_GT(different.size(), 8u);
    EXPECT_TRUE(different.contains(0));
    EXPECT_EQ(input_elements(p, 3), sum(sent_counts(p, 3), 5));
    EXPECT_EQ(output_elements(p, 3), sum(received_counts(p, 3), 5));
  }
  const Pattern gathered{Collective::all_gather_v, DataType::f32, ReduceOp::sum, 5, 100, 9};
  EXPECT_EQ(received_counts(gathered, 0), received_counts(gathered, 4));
  EXPECT_EQ(input_elements(gathered, 2), received_counts(gathered, 0)[2]);
  EXPECT_EQ(in_place_input(gathered, 2), sum(received_counts(gathered, 0), 2));
  const Pattern scattered{Collective::reduce_scatter_v, DataType::f32, ReduceOp::sum, 5, 100, 9};
  EXPECT_EQ(sent_counts(scattered, 0), sent_counts(scattered, 4));
  EXPECT_EQ(output_elements(scattered, 2), sent_counts(scattered, 0)[2]);
  EXPECT_EQ(in_place_output(scattered, 2), sum(sent_counts(scattered, 0), 2));
}

/// What arrives is what was sent, element by element.
TEST(Patterns, ExpectedOutputsAreTheInputsOfOthers) {
  Pattern p{Collective::all_to_all_v, DataType::u64, ReduceOp::sum, 4, 7, 11};
  for (int to = 0; to < 4; ++to)
    for (int from = 0; from < 4; ++from) {
      const std::size_t in = sum(sent_counts(p, from), to), out = sum(received_counts(p, to), from);
      for (std::size_t i = 0; i < part_count(p, from, to); ++i)
        EXPECT_EQ(expected_bits(p, to, out + i), input_bits(p, from, in + i));
    }
  p.collective = Collective::scatter;
  p.root = 2;
  EXPECT_EQ(expected_bits(p, 3, 4), input_bits(p, 2, 3 * 7 + 4));
  p.collective = Collective::broadcast;
  EXPECT_EQ(expected_bits(p, 3, 4), input_bits(p, 2, 4));
  p.collective = Collective::gather;
  EXPECT_EQ(expected_bits(p, 2, 3 * 7 + 4), input_bits(p, 3, 4));
}

}  // namespace

}  // namespace treering
