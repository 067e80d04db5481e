// The test data of perf/patterns: exact whatever the order, and right by other arithmetic than its
// own.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perf/patterns.hpp"

namespace treering {
namespace {

constexpr DataType floats[] = {DataType::f8e4m3, DataType::f8e5m2, DataType::f16,
                               DataType::bf16,   DataType::f32,    DataType::f64};
constexpr ReduceOp float_ops[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min,
                                  ReduceOp::max, ReduceOp::avg,  ReduceOp::premul_sum};
constexpr int worlds[] = {1, 2, 3, 4, 5, 7, 8, 16, 64, 65, 300};
constexpr std::size_t elements = 40;

std::string describe(const Pattern& p) {
  return std::string(name(p.collective)) + " " + name(p.type) + " " + name(p.op) +
         " n=" + std::to_string(p.ranks) + " seed=" + std::to_string(p.seed);
}

/// Digits of the significand, and the exponents of the smallest and the largest normal number.
struct Format {
  int bits, digits, least, most;
};
Format format_of(DataType type) {
  switch (type) {
    case DataType::f8e4m3:
      return {8, 4, -6, 8};
    case DataType::f8e5m2:
      return {8, 3, -14, 15};
    case DataType::f16:
      return {16, 11, -14, 15};
    case DataType::bf16:
      return {16, 8, -126, 127};
    case DataType::f32:
      return {32, 24, -126, 127};
    default:
      return {64, 53, -1022, 1023};
  }
}

/// What the bits of a float mean: a decoder that knows nothing of the encoder under test.
long double value_of(std::uint64_t bits, DataType type) {
  if (type == DataType::f64) return std::bit_cast<double>(bits);
  if (type == DataType::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const Format f = format_of(type);
  const int fraction = f.digits - 1;
  const std::uint64_t magnitude = bits & ((1u << (f.bits - 1)) - 1);
  const int exponent = static_cast<int>(magnitude >> fraction);
  if (exponent - 1 + f.least > f.most || (type == DataType::f8e4m3 && magnitude == 0x7f))
    return std::numeric_limits<long double>::quiet_NaN();  // or infinite: no number
  const auto steps = static_cast<long double>(magnitude & ((1u << fraction) - 1));
  const long double value =
      exponent == 0 ? std::ldexp(steps, f.least - fraction)
                    : std::ldexp(steps + (1 << fraction), exponent - 1 + f.least - fraction);
  return bits != magnitude ? -value : value;
}

/// True if the type holds this value exactly, as a normal number or zero.
bool representable(long double value, DataType type) {
  const Format f = format_of(type);
  if (value == 0) return true;
  int exponent = 0;
  const long double scaled = std::ldexp(std::frexp(value, &exponent), f.digits);
  const bool nan = type == DataType::f8e4m3 && std::abs(value) == 480;
  return scaled == std::trunc(scaled) && exponent - 1 >= f.least && exponent - 1 <= f.most && !nan;
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
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::premul_sum})
      for (const int ranks : worlds) {
        const Pattern p{Collective::all_reduce, type, op, ranks, elements, 7};
        const auto contribution = [&](int rank, std::size_t i) {
          const long double input = value_of(input_bits(p, rank, i), type);
          EXPECT_TRUE(representable(input, type)) << describe(p) << " element " << i;
          return input * pattern_scale(p, rank);
        };
        for (const auto& order : orders(ranks, 1))
          for (std::size_t i = 0; i < elements; ++i) {
            long double sum = contribution(order[0], i);
            for (std::size_t r = 1; r < order.size(); ++r) {
              const long double next = contribution(order[r], i);
              sum = op == ReduceOp::prod ? sum * next : sum + next;
              ASSERT_TRUE(representable(sum, type)) << describe(p) << " element " << i;
            }
            const std::uint64_t expected = expected_bits(p, 0, i);
            ASSERT_EQ(sum, value_of(expected, type)) << describe(p) << " element " << i;
            if (sum == 0) {
              ASSERT_EQ(std::signbit(sum), expected != 0) << describe(p) << " element " << i;
            }
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
        const std::uint64_t magnitude =
            bits & ((std::uint64_t{1} << (format_of(type).bits - 1)) - 1);
        if (type == DataType::f32) {
          ASSERT_EQ(miss, 0) << describe(p) << " element " << i;
          continue;
        }
        if (magnitude == 0) {
          ASSERT_LE(miss, value_of(1, type) / 2) << describe(p) << " element " << i;
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
T combined(ReduceOp op, T x, T y) {
  const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(a * b);
    case ReduceOp::min:
      return std::min(x, y);
    case ReduceOp::max:
      return std::max(x, y);
    case ReduceOp::bit_and:
      return static_cast<T>(a & b);
    case ReduceOp::bit_or:
      return static_cast<T>(a | b);
    case ReduceOp::bit_xor:
      return static_cast<T>(a ^ b);
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
void check_integers(DataType type) {
  const auto as = [](std::uint64_t bits) { return static_cast<T>(bits); };
  for (int o = 0; o < reduce_ops; ++o)
    for (const int ranks : worlds) {
      const auto op = static_cast<ReduceOp>(o);
      const Pattern p{Collective::all_reduce, type, op, ranks, elements, 13};
      const auto contribution = [&](int rank, std::size_t i) {
        const T scale = static_cast<T>(pattern_scale(p, rank));
        return combined(ReduceOp::prod, as(input_bits(p, rank, i)), scale);
      };
      for (std::size_t i = 0; i < elements; ++i) {
        T result = contribution(0, i);
        for (int r = 1; r < ranks; ++r) result = combined(op, result, contribution(r, i));
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
  check_integers<std::uint16_t>(DataType::u16);
  check_integers<std::int16_t>(DataType::i16);
  check_integers<std::uint32_t>(DataType::u32);
  check_integers<std::int32_t>(DataType::i32);
  check_integers<std::uint64_t>(DataType::u64);
  check_integers<std::int64_t>(DataType::i64);
}

/// Every bit of a result is 0 here and 1 there, and no rank can be left out unnoticed.
TEST(Patterns, BitsVaryAndEveryRankMatters) {
  for (const ReduceOp op : {ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor})
    for (const int ranks : worlds) {
      const Pattern p{Collective::all_reduce, DataType::u16, op, ranks, 2000, 15};
      std::uint64_t ones = 0, zeros = 0;
      std::set<int> matter;
      for (std::size_t i = 0; i < p.count; ++i) {
        const std::uint64_t whole = expected_bits(p, 0, i);
        ones |= whole, zeros |= ~whole;
        std::vector<std::uint64_t> inputs;
        for (int r = 0; r < ranks; ++r) inputs.push_back(input_bits(p, r, i));
        for (int left_out = 0; left_out < ranks; ++left_out) {
          std::uint64_t rest = op == ReduceOp::bit_and ? 0xffff : 0;
          for (int r = 0; r < ranks; ++r)
            if (r != left_out) rest = combined(op, rest, inputs[static_cast<std::size_t>(r)]);
          if (rest != whole) matter.insert(left_out);
        }
      }
      EXPECT_EQ(ones & zeros & 0xffff, 0xffffu) << describe(p);
      EXPECT_EQ(matter.size(), static_cast<std::size_t>(ranks)) << describe(p);
    }
}

TEST(Patterns, BooleansAreTrueUnlessZero) {
  for (int o = 0; o < reduce_ops; ++o)
    for (const int ranks : worlds) {
      const auto op = static_cast<ReduceOp>(o);
      if (!applies(op, DataType::boolean)) continue;
      const Pattern p{Collective::all_reduce, DataType::boolean, op, ranks, 400, 16};
      std::set<std::uint64_t> results, inputs;
      for (std::size_t i = 0; i < p.count; ++i) {
        int yes = 0;
        for (int r = 0; r < ranks; ++r) {
          yes += input_bits(p, r, i) != 0;
          inputs.insert(input_bits(p, r, i));
        }
        const bool all = op == ReduceOp::prod || op == ReduceOp::min || op == ReduceOp::bit_and;
        const bool result = op == ReduceOp::bit_xor ? yes % 2 != 0 : all ? yes == ranks : yes > 0;
        const std::uint64_t expected = expected_bits(p, 0, i);
        ASSERT_EQ(expected, ranks == 1 ? input_bits(p, 0, i) : result) << describe(p);
        results.insert(expected);
      }
      EXPECT_GE(results.size(), 2u) << describe(p);
      EXPECT_GT(inputs.size(), 50u) << describe(p);
    }
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
    for (const ReduceOp op : float_ops) {
      const Pattern p{Collective::all_reduce, type, op, 300, 200, 31};
      std::set<std::uint64_t> results;
      for (std::size_t i = 0; i < p.count; ++i) results.insert(expected_bits(p, 0, i));
      EXPECT_GE(results.size(), size_of(type) == 1 ? 5u : 20u) << describe(p);
    }
}

TEST(Patterns, FloatsComeWithBothSigns) {
  for (const DataType type : floats)
    for (const ReduceOp op : float_ops) {
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
