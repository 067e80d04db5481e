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

}  // namespace treering
