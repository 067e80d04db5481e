// Folds of every type and operator, on every instruction set of this processor and on a group of
// many threads, against sums made one element at a time in wider arithmetic.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "kernels/ops/device_fold.hpp"
#include "kernels/ops/host/fold_host.hpp"
#include "kernels/ops/narrow_floats.hpp"
#include "kernels/ops/scale.hpp"
#include "tests/print.hpp"
#include "treering/error.hpp"
#include "treering/types.hpp"

namespace treering {
namespace {

std::vector<DataType> all_types() {
  std::vector<DataType> types;
  for (int i = 0; i < data_types; ++i) types.push_back(static_cast<DataType>(i));
  return types;
}

// ---- The reference: nothing in it is shared with the folds. ----

/// A binary floating-point format with `mantissa` stored bits. Without infinities the largest code
/// is the NaN.
struct Format {
  int bits, mantissa;
  bool infinities = true;

  int bias() const { return (1 << (bits - mantissa - 2)) - 1; }
  std::uint64_t sign() const { return std::uint64_t{1} << (bits - 1); }
  std::uint64_t exponents() const { return (sign() - 1) >> mantissa << mantissa; }
  bool is_nan(std::uint64_t pattern) const {
    const std::uint64_t code = pattern & (sign() - 1);
    return infinities ? code > exponents() : code == sign() - 1;
  }
};
constexpr Format e4m3_format{8, 3, false}, e5m2_format{8, 2};
constexpr Format f16_format{16, 10}, bf16_format{16, 7};

Format format_of(DataType type) {
  switch (type) {
    case DataType::f8e4m3:
      return e4m3_format;
    case DataType::f8e5m2:
      return e5m2_format;
    case DataType::f16:
      return f16_format;
    case DataType::bf16:
      return bf16_format;
    case DataType::f32:
      return {32, 23};
    default:
      return {64, 52};
  }
}

double decode(Format format, std::uint32_t pattern) {
  const auto code = static_cast<std::uint32_t>(pattern & (format.sign() - 1));
  const double sign = code != pattern ? -1.0 : 1.0;
  if (format.is_nan(pattern)) return std::numeric_limits<double>::quiet_NaN();
  if (format.infinities && code == format.exponents())
    return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(code >> format.mantissa);
  const std::uint32_t mantissa = code & ((1u << format.mantissa) - 1);
  const double significand = exponent == 0 ? mantissa : mantissa + (1u << format.mantissa);
  return sign *
         std::ldexp(significand, (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa);
}

/// Rounds by the definition: to a multiple of the last place, ties to even (nearbyint), then
/// encodes.
std::uint32_t encode(Format format, double value) {
  const auto sign = static_cast<std::uint32_t>(std::signbit(value) ? format.sign() : 0);
  const auto infinity = static_cast<std::uint32_t>(format.exponents());
  const std::uint32_t beyond =
      format.infinities ? infinity : static_cast<std::uint32_t>(format.sign() - 1);
  if (std::isnan(value))
    return sign | infinity | (format.infinities ? 1u << (format.mantissa - 1) : beyond);
  value = std::fabs(value);
  const int smallest = 1 - format.bias();
  const int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  if (exponent > format.bias() + 1) return sign | beyond;
  const double places = std::nearbyint(std::ldexp(value, format.mantissa - exponent));
  const auto steps = static_cast<std::uint32_t>(places);  // below 2^(mantissa + 1), or just that
  const std::uint32_t pattern =
      (static_cast<std::uint32_t>(exponent - smallest) << format.mantissa) + steps;
  return sign | std::min(pattern, beyond);
}

struct Shape {
  DataType type;
  ReduceOp op;
  int sources, destinations;
  std::size_t count, source_skew,
      destination_skew;  // skews in elements, growing with the buffer's number
  std::int32_t divisor;
  int own = -1;
  double scale = 1;

  Fold how() const {
    Fold fold{type, op, divisor, false};
    if (op == ReduceOp::premul_sum) fold.own = own, fold.scale = scale_bits(type, scale);
    return fold;
  }
};

template <class T>
T wrap(ReduceOp op, T a, T b) {
  using Wide = std::uint64_t;  // its multiples of 2^64 are those of narrower types, too
  switch (op) {
    case ReduceOp::prod:
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::bit_and:
      return static_cast<T>(a & b);
    case ReduceOp::bit_or:
      return static_cast<T>(a | b);
    case ReduceOp::bit_xor:
      return static_cast<T>(a ^ b);
    default:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

template <class T>
T combined(ReduceOp op, T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return wrap(op, x, y);
  } else {
    const bool nan = std::isnan(x) || std::isnan(y);
    const bool x_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    switch (op) {
      case ReduceOp::prod:
        return x * y;
      case ReduceOp::min:
        return nan ? std::numeric_limits<T>::quiet_NaN() : (x_less ? x : y);
      case ReduceOp::max:
        return nan ? std::numeric_limits<T>::quiet_NaN() : (x_less ? y : x);
      default:
        return x + y;
    }
  }
}

/// In the accumulator T; `round` rounds to the type.
template <class T, class Round>
T expected(const Shape& shape, std::vector<T> values, Round round) {
  if (shape.op == ReduceOp::premul_sum && shape.own >= 0) {
    T& own = values[static_cast<std::size_t>(shape.own)];
    own = round(combined(ReduceOp::prod, own, static_cast<T>(shape.scale)));
  }
  T x = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) x = combined(shape.op, x, values[i]);
  if (shape.op != ReduceOp::avg) return x;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Wide>(x) / static_cast<Wide>(shape.divisor));
  } else {
    return x / static_cast<T>(shape.divisor);
  }
}

using Sources = std::vector<const std::byte*>;

/// Element i of all sources, as read.
template <class T>
std::vector<T> elements(const Sources& sources, std::size_t i) {
  std::vector<T> values(sources.size());
  for (std::size_t s = 0; s < sources.size(); ++s)
    std::memcpy(&values[s], sources[s] + i * sizeof(T), sizeof(T));
  return values;
}

template <class T>
std::vector<std::byte> reference_as(const Shape& shape, const Sources& sources) {
  std::vector<std::byte> result(shape.count * sizeof(T));
  for (std::size_t i = 0; i < shape.count; ++i) {
    const T x = expected(shape, elements<T>(sources, i), [](T y) { return y; });
    std::memcpy(&result[i * sizeof(T)], &x, sizeof(T));
  }
  return result;
}

template <class Bits>
std::vector<std::byte> narrow_reference(const Shape& shape, const Sources& sources) {
  const Format format = format_of(shape.type);
  std::vector<std::byte> result(shape.count * sizeof(Bits));
  for (std::size_t i = 0; i < shape.count; ++i) {
    std::vector<float> values;
    for (const Bits bits : elements<Bits>(sources, i))
      values.push_back(static_cast<float>(decode(format, bits)));
    const float x = expected(shape, values, [&](float y) {
      return static_cast<float>(decode(format, encode(format, static_cast<double>(y))));
    });
    const auto bits = static_cast<Bits>(encode(format, static_cast<double>(x)));
    std::memcpy(&result[i * sizeof(Bits)], &bits, sizeof(Bits));
  }
  return result;
}

/// By counting the true ones.
std::vector<std::byte> boolean_reference(const Shape& shape, const Sources& sources) {
  std::vector<std::byte> result(shape.count);
  for (std::size_t i = 0; i < shape.count; ++i) {
    int yes = 0;
    for (const std::byte* source : sources) yes += source[i] != std::byte{0};
    const bool any = yes > 0, all = yes == static_cast<int>(sources.size()), odd = yes % 2 != 0;
    const bool both =
        shape.op == ReduceOp::prod || shape.op == ReduceOp::min || shape.op == ReduceOp::bit_and;
    result[i] = std::byte{shape.op == ReduceOp::bit_xor ? odd : both ? all : any};
  }
  return result;
}

std::vector<std::byte> reference(const Shape& shape, const Sources& sources) {
  switch (shape.type) {
    case DataType::u8:
      return reference_as<std::uint8_t>(shape, sources);
    case DataType::i8:
      return reference_as<std::int8_t>(shape, sources);
    case DataType::u16:
      return reference_as<std::uint16_t>(shape, sources);
    case DataType::i16:
      return reference_as<std::int16_t>(shape, sources);
    case DataType::u32:
      return reference_as<std::uint32_t>(shape, sources);
    case DataType::i32:
      return reference_as<std::int32_t>(shape, sources);
    case DataType::u64:
      return reference_as<std::uint64_t>(shape, sources);
    case DataType::i64:
      return reference_as<std::int64_t>(shape, sources);
    case DataType::boolean:
      return boolean_reference(shape, sources);
    case DataType::f8e4m3:
    case DataType::f8e5m2:
      return narrow_reference<std::uint8_t>(shape, sources);
    case DataType::f16:
    case DataType::bf16:
      return narrow_reference<std::uint16_t>(shape, sources);
    case DataType::f32:
      return reference_as<float>(shape, sources);
    case DataType::f64:
      return reference_as<double>(shape, sources);
  }
  return {};
}

bool is_nan(DataType type, const std::byte* element) {
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, element, size_of(type));
  return is_floating_point(type) && format_of(type).is_nan(pattern);
}

// ---- Ways to fold. ----

/// Thread `rank` of a block whose threads run one after another. All that the threads of a fold
/// tell each other is the addresses, so these are there before the first thread runs.
class SequentialGroup {
 public:
  SequentialGroup(int rank, int size, Fan& fan) : rank_(rank), size_(size), fan_(&fan) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  void sync() const {}
  template <class T>
  T& shared() const {
    static_assert(std::is_same_v<T, Fan>);
    return *fan_;
  }

 private:
  int rank_, size_;
  Fan* fan_;
};

struct Way {
  std::string name;
  const FoldTable* table;  ///< null: many threads
  bool streaming;
};

std::vector<Way> all_ways() {
  std::vector<Way> ways{{"threads", nullptr, false}};
  for (const FoldTable* table : fold_tables())
    for (bool streaming : {false, true})
      ways.push_back({std::string(table->instruction_set) + (streaming ? ", streaming" : ""), table,
                      streaming});
  return ways;
}

void fold_by_threads(const Fold& how, const FoldRange& range) {
  constexpr int threads = 7;
  Fan fan{};
  for (int i = 0; i < range.source_count; ++i)
    fan.address[i] = const_cast<std::byte*>(range.sources[i]);
  for (int i = 0; i < range.destination_count; ++i)
    fan.address[range.source_count + i] = range.destinations[i];
  for (int t = 0; t < threads; ++t) {
    SequentialGroup group(t, threads, fan);
    fold_elements(
        group, how, range.source_count, [&](int i) { return range.sources[i]; },
        range.destination_count, [&](int i) { return range.destinations[i]; },
        range.bytes / size_of(how.type));
  }
}

void fold_by(const Way& way, Fold how, const FoldRange& range) {
  how.streaming = way.streaming;
  if (way.table == nullptr)
    fold_by_threads(how, range);
  else
    fold_with(*way.table, how, range);
}

// ---- Buffers. ----

/// A buffer that starts at any distance from a multiple of 64, between guard bytes.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment, std::byte fill)
      : memory_(bytes + 2 * guard + 64 + misalignment, guard_byte), bytes_(bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data() + guard);
    offset_ = guard + (64 - begin % 64) % 64 + misalignment;
    std::memset(data(), static_cast<int>(fill), bytes);
  }
  std::byte* data() { return memory_.data() + offset_; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != guard_byte) return false;
    return true;
  }

 private:
  static constexpr std::size_t guard = 128;
  static constexpr std::byte guard_byte{0xc7};
  std::vector<std::byte> memory_;
  std::size_t bytes_, offset_;
};

/// One number of any kind: small ones, any bit pattern, and the special ones.
std::uint64_t draw(DataType type, std::mt19937_64& random) {
  const std::uint64_t bits = random(), kind = random() % 8;
  if (type == DataType::boolean) return kind < 4 ? 0 : bits;
  if (!is_floating_point(type)) return kind > 1 ? bits % 15 - 7 : bits;
  if (kind == 1) return bits;
  const Format format = format_of(type);
  const int mantissa = format.mantissa;
  const std::uint64_t sign = format.sign(), infinity = format.exponents();
  const std::uint64_t one = (infinity >> 1) >> mantissa << mantissa;
  const std::uint64_t specials[] = {0,
                                    sign,
                                    infinity,
                                    sign | infinity,
                                    infinity + 1,
                                    infinity | (infinity >> 1),
                                    sign - 1,
                                    1,
                                    sign | 1,
                                    (std::uint64_t{1} << mantissa) - 1,
                                    infinity - 1,
                                    one};
  if (kind == 0) return specials[bits % std::size(specials)];
  // near one, so that sums have something to round
  return one + (bits % (std::uint64_t{1} << (mantissa + 2))) + (bits & sign ? sign : 0);
}

void fill(Buffer& buffer, DataType type, std::size_t count, std::mt19937_64& random) {
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = draw(type, random);
    std::memcpy(buffer.data() + i * size, &bits, size);
  }
}

std::string text(const Shape& shape, const Way& way) {
  return std::string(name(shape.type)) + " " + name(shape.op) + " × " +
         std::to_string(shape.count) + ", " + std::to_string(shape.sources) + " → " +
         std::to_string(shape.destinations) + ", skews " + std::to_string(shape.source_skew) + " " +
         std::to_string(shape.destination_skew) + ", divisor " + std::to_string(shape.divisor) +
         ", own " + std::to_string(shape.own) + " × " + std::to_string(shape.scale) + ": " +
         way.name;
}

/// The first element that differs from what is expected, any two NaNs being equal; `count` if none
/// does.
std::size_t first_difference(DataType type, const std::byte* result, const std::byte* expected,
                             std::size_t count) {
  const std::size_t size = size_of(type);
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte *a = result + i * size, *b = expected + i * size;
    if (std::memcmp(a, b, size) != 0 && !(is_nan(type, a) && is_nan(type, b))) return i;
  }
  return count;
}

/// Folds a shape every way, out of place and, where a source and a destination can be the same, in
/// place.
void check(const Shape& shape, std::uint64_t seed) {
  const std::size_t size = size_of(shape.type), bytes = shape.count * size;
  std::mt19937_64 random(seed);
  const auto skew = [&](std::size_t each, int i) {
    return each * static_cast<std::size_t>(i + 1) * size % 64;
  };
  std::vector<Buffer> inputs;
  for (int s = 0; s < shape.sources; ++s) {
    inputs.emplace_back(bytes, skew(shape.source_skew, s), std::byte{0});
    fill(inputs.back(), shape.type, shape.count, random);
  }
  std::vector<const std::byte*> sources;
  for (Buffer& input : inputs) sources.push_back(input.data());
  const bool copies = shape.sources == 1 && !(shape.op == ReduceOp::avg && shape.divisor != 1) &&
                      !(shape.op == ReduceOp::premul_sum && shape.own == 0);
  const std::vector<std::byte> wanted =
      copies ? std::vector<std::byte>(sources[0], sources[0] + bytes) : reference(shape, sources);

  for (const Way& way : all_ways()) {
    for (int in_place = -1; in_place < shape.sources; in_place += std::max(1, shape.sources - 1)) {
      std::vector<Buffer> outputs;
      for (int d = 0; d < shape.destinations; ++d)
        outputs.emplace_back(bytes, skew(shape.destination_skew, d), std::byte{0xee});
      Buffer aliased(bytes, skew(shape.source_skew, 0), std::byte{0});
      std::vector<const std::byte*> from = sources;
      std::vector<std::byte*> to;
      for (Buffer& output : outputs) to.push_back(output.data());
      if (in_place >= 0) {
        if (bytes > 0)
          std::memcpy(aliased.data(), sources[static_cast<std::size_t>(in_place)], bytes);
        from[static_cast<std::size_t>(in_place)] = to.back() = aliased.data();
      }
      fold_by(way, shape.how(), {from.data(), shape.sources, to.data(), shape.destinations, bytes});
      for (std::byte* result : to) {
        const std::size_t wrong = first_difference(shape.type, result, wanted.data(), shape.count);
        ASSERT_EQ(wrong, shape.count) << "element " << wrong << " of " << text(shape, way)
                                      << ", in place " << in_place << ", seed " << seed;
      }
      if (copies) {
        ASSERT_TRUE(bytes == 0 || std::memcmp(to[0], wanted.data(), bytes) == 0)
            << "a copy changed bits: " << text(shape, way);
      }
      ASSERT_TRUE(aliased.guards_intact()) << text(shape, way);
      for (Buffer& output : outputs) ASSERT_TRUE(output.guards_intact()) << text(shape, way);
    }
  }
}

// ---- Tests. ----

class FoldTest : public testing::TestWithParam<DataType> {};

TEST_P(FoldTest, EveryOperatorCountFanAndAlignment) {
  std::uint64_t seed = 1;
  const DataType type = GetParam();
  const bool has_negative = is_floating_point(type) || is_signed_integer(type);
  for (int o = 0; o < reduce_ops; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    if (!applies(op, type)) continue;
    for (std::size_t count : {0, 1, 3, 7, 63, 64, 65, 1000})
      for (int sources : {1, 2, 3, 5, 17})
        for (int destinations : {1, 2, 3})
          for (auto [source_skew, destination_skew] :
               {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {0, 1}, {3, 0}}) {
            ++seed;
            const auto divisor = static_cast<std::int32_t>(seed % 3 == 0 ? 300 : sources);
            const int own = static_cast<int>(seed % (sources + 1u)) - 1;
            const double scale = static_cast<double>(seed % 100) * 1.23;
            check({type, op, sources, destinations, count, source_skew, destination_skew, divisor,
                   own, has_negative && seed % 2 != 0 ? -scale : scale},
                  seed);
            if (HasFatalFailure()) return;
          }
  }
}

/// More than a block of the streaming folds, at every alignment of the destination.
TEST_P(FoldTest, LongStreams) {
  for (std::size_t skew = 0; skew < 64 / size_of(GetParam()); skew += 3)
    for (int sources : {1, 2}) {
      check({GetParam(), ReduceOp::sum, sources, 2, 20011, 0, skew, 1}, 77 + skew);
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Types, FoldTest, testing::ValuesIn(all_types()),
                         [](const auto& info) { return std::string(name(info.param)); });

template <class T>
std::vector<T> fold_values(const Way& way, const Fold& how,
                           const std::vector<std::vector<T>>& sources) {
  std::vector<const std::byte*> from;
  for (const auto& source : sources)
    from.push_back(reinterpret_cast<const std::byte*>(source.data()));
  std::vector<T> result(sources[0].size());
  std::byte* to = reinterpret_cast<std::byte*>(result.data());
  fold_by(way, how,
          {from.data(), static_cast<int>(from.size()), &to, 1, result.size() * sizeof(T)});
  return result;
}

TEST(Fold, IntegersWrap) {
  for (const Way& way : all_ways()) {
    const auto max32 = std::numeric_limits<std::int32_t>::max(),
               min32 = std::numeric_limits<std::int32_t>::min();
    const auto max64 = std::numeric_limits<std::int64_t>::max(),
               min64 = std::numeric_limits<std::int64_t>::min();
    const Fold sum32{DataType::i32, ReduceOp::sum, 1, false},
        prod8{DataType::i8, ReduceOp::prod, 1, false};
    const Fold sum64{DataType::i64, ReduceOp::sum, 1, false},
        prod64{DataType::i64, ReduceOp::prod, 1, false};
    EXPECT_EQ(fold_values<std::int32_t>(way, sum32, {{max32, min32, -1}, {1, -1, 1}}),
              (std::vector<std::int32_t>{min32, max32, 0}));
    EXPECT_EQ(fold_values<std::int64_t>(way, sum64, {{max64, min64}, {1, -1}}),
              (std::vector<std::int64_t>{min64, max64}));
    EXPECT_EQ(fold_values<std::int64_t>(way, prod64, {{max64, min64}, {2, -1}}),
              (std::vector<std::int64_t>{-2, min64}));
    EXPECT_EQ(fold_values<std::int8_t>(way, prod8, {{-128, 100, 7}, {-1, 3, -8}}),
              (std::vector<std::int8_t>{-128, 44, -56}));
  }
}

TEST(Fold, IntegerAverageTruncatesTowardZero) {
  for (const Way& way : all_ways()) {
    EXPECT_EQ(fold_values<std::int32_t>(way, {DataType::i32, ReduceOp::avg, 2, false},
                                        {{-3, 3, -4}, {-4, 4, 3}}),
              (std::vector<std::int32_t>{-3, 3, 0}));
    EXPECT_EQ(fold_values<std::int64_t>(way, {DataType::i64, ReduceOp::avg, 3, false},
                                        {{-1, -7}, {-1, -1}}),
              (std::vector<std::int64_t>{0, -2}));
    EXPECT_EQ(fold_values<std::int8_t>(way, {DataType::i8, ReduceOp::avg, 2, false},
                                       {{100, -3}, {100, -2}}),
              (std::vector<std::int8_t>{-28, -2}));  // 200 wraps to -56 first
    EXPECT_EQ(
        fold_values<std::uint8_t>(way, {DataType::u8, ReduceOp::avg, 300, false}, {{255}, {0}}),
        (std::vector<std::uint8_t>{0}));  // 300 is not 44
    EXPECT_EQ(fold_values<std::uint32_t>(way, {DataType::u32, ReduceOp::avg, 2, false},
                                         {{0xfffffffe}, {0}}),
              (std::vector<std::uint32_t>{0x7fffffff}));
    EXPECT_EQ(fold_values<std::uint64_t>(way, {DataType::u64, ReduceOp::avg, 3, false},
                                         {{~0ull - 1}, {0}}),
              (std::vector<std::uint64_t>{(~0ull - 1) / 3}));
  }
}

TEST(Fold, AverageDividesAtTheEndOnly) {
  for (const Way& way : all_ways()) {
    const Fold before{DataType::f32, ReduceOp::avg, 1, false},
        last{DataType::f32, ReduceOp::avg, 3, false};
    EXPECT_EQ(fold_values<float>(way, before, {{1, 5}, {2, 7}}), (std::vector<float>{3, 12}));
    EXPECT_EQ(fold_values<float>(way, last, {{1, 5}, {1, 7}, {5, 0}}),
              (std::vector<float>{7.0f / 3, 4}));
    EXPECT_EQ(fold_values<float>(way, last, {{1, 6}}), (std::vector<float>{1.0f / 3, 2}));
    // Only averages are divided, whatever the divisor.
    EXPECT_EQ(fold_values<float>(way, {DataType::f32, ReduceOp::sum, 3, false}, {{1}, {2}}),
              (std::vector<float>{3}));
  }
}

TEST(Fold, ZerosAndNaNsOfMinimumAndMaximum) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              inf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> pairs = {{0.0f, -0.0f, nan, 1, -inf, nan, -0.0f},
                                                 {-0.0f, 0.0f, 1, nan, nan, inf, -0.0f}};
  for (const Way& way : all_ways()) {
    const auto min = fold_values<float>(way, {DataType::f32, ReduceOp::min, 1, false}, pairs);
    const auto max = fold_values<float>(way, {DataType::f32, ReduceOp::max, 1, false}, pairs);
    for (std::size_t i : {0, 1, 6}) {
      EXPECT_EQ(min[i], 0.0f);
      EXPECT_TRUE(std::signbit(min[i])) << way.name << " " << i;
      EXPECT_EQ(max[i], 0.0f);
      EXPECT_EQ(std::signbit(max[i]), i == 6) << way.name << " " << i;
    }
    for (std::size_t i : {2, 3, 4, 5}) {
      EXPECT_TRUE(std::isnan(min[i])) << way.name << " " << i;
      EXPECT_TRUE(std::isnan(max[i])) << way.name << " " << i;
    }
  }
}

/// 1 + 2^-11 + 2^-11 is 1 + 2^-10 when f16 is summed in f32, and 1 when every step is rounded.
TEST(Fold, HalvesAreRoundedOnce) {
  for (const Way& way : all_ways()) {
    EXPECT_EQ(fold_values<std::uint16_t>(way, {DataType::f16, ReduceOp::sum, 1, false},
                                         {{0x3c00}, {0x1000}, {0x1000}}),
              (std::vector<std::uint16_t>{0x3c01}));
    EXPECT_EQ(fold_values<std::uint16_t>(way, {DataType::bf16, ReduceOp::sum, 1, false},
                                         {{0x3f80}, {0x3b80}, {0x3b80}}),
              (std::vector<std::uint16_t>{0x3f81}));
  }
}

template <class Conversion>
void check_every_pattern(Format format) {
  for (std::uint32_t pattern = 0; pattern >> format.bits == 0; ++pattern) {
    const float value = Conversion::widen(pattern);
    const double wanted = decode(format, pattern);
    const std::uint32_t back = Conversion::narrow(value);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_EQ(back, pattern | 1u << (format.mantissa - 1)) << pattern;  // quiet, its payload kept
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(value),
                std::bit_cast<std::uint32_t>(static_cast<float>(wanted)))
          << pattern;
      ASSERT_EQ(back, pattern);
    }
  }
}

/// Around every representable value, every midpoint and the end of the range, and at random.
template <class Conversion>
void check_rounding(Format format) {
  const auto check_one = [&](std::uint32_t bits) {
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(format.is_nan(Conversion::narrow(value))) << bits;
    } else {
      ASSERT_EQ(Conversion::narrow(value), encode(format, static_cast<double>(value)))
          << std::hex << bits;
    }
  };
  const auto check_around = [&](double value) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    for (const std::uint32_t sign : {0u, 0x80000000u})
      for (const std::uint32_t step : {0u, 1u, ~0u}) check_one((bits + step) ^ sign);
  };
  double largest = 0;
  for (std::uint32_t pattern = 0; pattern < format.sign(); ++pattern) {
    const double here = decode(format, pattern), next = decode(format, pattern + 1);
    check_around(here);
    check_around((here + next) / 2);
    if (std::isfinite(here)) largest = here;
  }
  const double last_place = std::ldexp(1, std::ilogb(largest) - format.mantissa);
  for (const double by : {0.5, 1.0, 1.5, 2.0, 3.0}) check_around(largest + by * last_place);
  for (const double far : {2.0, 4.0, 1000.0}) check_around(far * largest);
  std::mt19937 random(5);
  for (int i = 0; i < 1000000; ++i) check_one(static_cast<std::uint32_t>(random()));
}

TEST(Float8E4M3, EveryPatternRoundTrips) { check_every_pattern<Float8E4M3>(e4m3_format); }
TEST(Float8E4M3, RoundsToNearestEven) { check_rounding<Float8E4M3>(e4m3_format); }
TEST(Float8E5M2, EveryPatternRoundTrips) { check_every_pattern<Float8E5M2>(e5m2_format); }
TEST(Float8E5M2, RoundsToNearestEven) { check_rounding<Float8E5M2>(e5m2_format); }
TEST(Float16, EveryPatternRoundTrips) { check_every_pattern<Float16>(f16_format); }
TEST(Float16, RoundsToNearestEven) { check_rounding<Float16>(f16_format); }
TEST(BFloat16, EveryPatternRoundTrips) { check_every_pattern<BFloat16>(bf16_format); }
TEST(BFloat16, RoundsToNearestEven) { check_rounding<BFloat16>(bf16_format); }

/// The numbers that the OCP's 8-bit formats are known by.
TEST(Float8, Landmarks) {
  const auto e4m3 = [](float x) { return Float8E4M3::narrow(x); };
  const auto e5m2 = [](float x) { return Float8E5M2::narrow(x); };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Float8E4M3::widen(0x7eu), 448);
  EXPECT_EQ(Float8E4M3::widen(0x01u), 0x1p-9f);
  EXPECT_TRUE(std::isnan(Float8E4M3::widen(0x7fu)) && std::isnan(Float8E4M3::widen(0xffu)));
  EXPECT_EQ(e4m3(464), 0x7eu);  // a tie: to even
  EXPECT_EQ(e4m3(std::nextafter(464.0f, 1000.0f)), 0x7fu);
  EXPECT_EQ(e4m3(-1e30f), 0xffu);
  EXPECT_EQ(e4m3(inf), 0x7fu);
  EXPECT_EQ(Float8E5M2::widen(0x7bu), 57344);
  EXPECT_EQ(Float8E5M2::widen(0x01u), 0x1p-16f);
  EXPECT_EQ(Float8E5M2::widen(0xfcu), -inf);
  EXPECT_EQ(e5m2(std::nextafter(61440.0f, 0.0f)), 0x7bu);
  EXPECT_EQ(e5m2(61440), 0x7cu);  // a tie: to even, which is infinity
  EXPECT_EQ(e5m2(-1e30f), 0xfcu);
}

#ifdef __SSE__
/// While it lives, this thread takes subnormal f32 for zero, and makes none.
struct FlushSubnormals {
  unsigned before = _mm_getcsr();
  FlushSubnormals() { _mm_setcsr(before | 0x8040); }
  ~FlushSubnormals() { _mm_setcsr(before); }
};

TEST(NarrowFloats, AreRightInThreadsThatFlushSubnormals) {
  const FlushSubnormals flush;
  volatile float tiny = 1e-39f;
  ASSERT_EQ(tiny * 1.0f, 0.0f) << "nothing is flushed";
  check_every_pattern<Float8E4M3>(e4m3_format);
  check_every_pattern<Float8E5M2>(e5m2_format);
  check_every_pattern<Float16>(f16_format);
  check_rounding<Float8E4M3>(e4m3_format);
  check_rounding<Float8E5M2>(e5m2_format);
  check_rounding<Float16>(f16_format);
}
#endif

/// Every narrow float through the vectors of every instruction set: times one keeps the number.
template <class Bits>
void check_times_one(DataType type, Bits one) {
  std::vector<Bits> all(std::size_t{1} << (8 * sizeof(Bits)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Bits>(i);
  const std::vector<Bits> ones(all.size(), one);
  for (const Way& way : all_ways()) {
    const auto result = fold_values<Bits>(way, {type, ReduceOp::prod, 1, false}, {all, ones});
    EXPECT_EQ(first_difference(type, reinterpret_cast<const std::byte*>(result.data()),
                               reinterpret_cast<const std::byte*>(all.data()), all.size()),
              all.size())
        << name(type) << " " << way.name;
  }
}

TEST(Fold, EveryNarrowFloatTimesOne) {
  check_times_one<std::uint8_t>(DataType::f8e4m3, 0x38);
  check_times_one<std::uint8_t>(DataType::f8e5m2, 0x3c);
  check_times_one<std::uint16_t>(DataType::f16, 0x3c00);
  check_times_one<std::uint16_t>(DataType::bf16, 0x3f80);
}

/// Any nonzero byte is true, and results are 0 or 1; a single source keeps its bytes.
TEST(Fold, Booleans) {
  using Bytes = std::vector<std::uint8_t>;
  const Bytes a{0, 0, 2, 255, 128}, b{0, 7, 0, 1, 128};
  const std::pair<ReduceOp, Bytes> results[] = {
      {ReduceOp::sum, {0, 1, 1, 1, 1}},     {ReduceOp::max, {0, 1, 1, 1, 1}},
      {ReduceOp::bit_or, {0, 1, 1, 1, 1}},  {ReduceOp::prod, {0, 0, 0, 1, 1}},
      {ReduceOp::min, {0, 0, 0, 1, 1}},     {ReduceOp::bit_and, {0, 0, 0, 1, 1}},
      {ReduceOp::bit_xor, {0, 1, 1, 0, 0}},
  };
  for (const Way& way : all_ways())
    for (const auto& [op, result] : results) {
      EXPECT_EQ(fold_values<std::uint8_t>(way, {DataType::boolean, op, 1, false}, {a, b}), result)
          << name(op) << " " << way.name;
      EXPECT_EQ(fold_values<std::uint8_t>(way, {DataType::boolean, op, 1, false}, {a}), a);
    }
}

/// This rank's own source is scaled and rounded to the type, once; the others are taken as they are.
TEST(Fold, PremultipliedSum) {
  const auto scaling = [](DataType type, int own, double scale) {
    return Fold{type, ReduceOp::premul_sum, 1, false, own, scale_bits(type, scale)};
  };
  for (const Way& way : all_ways()) {
    SCOPED_TRACE(way.name);
    EXPECT_EQ(fold_values<float>(way, scaling(DataType::f32, 1, -2), {{1, 2}, {10, 0.5f}}),
              (std::vector<float>{-19, 1}));
    EXPECT_EQ(fold_values<float>(way, scaling(DataType::f32, -1, -2), {{1, 2}, {10, 0.5f}}),
              (std::vector<float>{11, 2.5f}));
    EXPECT_EQ(fold_values<double>(way, scaling(DataType::f64, 0, 0.1), {{3}}),
              (std::vector<double>{3 * 0.1}));
    // (1 + 2^-10) · 1.5 is rounded to 1.5 + 2^-9 before 1.5 is taken away.
    EXPECT_EQ(fold_values<std::uint16_t>(way, scaling(DataType::f16, 0, 1.5), {{0x3c01}, {0xbe00}}),
              (std::vector<std::uint16_t>{0x1800}));
    EXPECT_EQ(fold_values<std::uint8_t>(way, scaling(DataType::u8, 0, 2.9), {{200}, {1}}),
              (std::vector<std::uint8_t>{145}));
    EXPECT_EQ(fold_values<std::int16_t>(way, scaling(DataType::i16, 0, -2.9), {{-20000}}),
              (std::vector<std::int16_t>{-25536}));
    // Alone and not one's own it keeps its bits, those of a signalling NaN too.
    EXPECT_EQ(fold_values<std::uint16_t>(way, scaling(DataType::f16, -1, 3), {{0x7c01}}),
              (std::vector<std::uint16_t>{0x7c01}));
  }
}

TEST(Scale, IsOfTheAccumulator) {
  EXPECT_EQ(scale_bits(DataType::f64, 0.1), std::bit_cast<std::uint64_t>(0.1));
  for (const DataType type :
       {DataType::f8e4m3, DataType::f8e5m2, DataType::f16, DataType::bf16, DataType::f32}) {
    EXPECT_EQ(scale_bits(type, 0.1), std::bit_cast<std::uint32_t>(0.1f));
    EXPECT_EQ(scale_bits(type, 1e300), 0x7f800000u);
  }
  EXPECT_EQ(scale_bits(DataType::u8, 255.9), 255u);
  EXPECT_EQ(scale_bits(DataType::u16, -0.9), 0u);
  EXPECT_EQ(scale_bits(DataType::i8, -128.9) & 0xff, 0x80u);
  EXPECT_EQ(scale_bits(DataType::u64, 0x1p63), std::uint64_t{1} << 63);
  EXPECT_EQ(scale_bits(DataType::i64, -0x1p63), std::uint64_t{1} << 63);
}

TEST(Scale, RefusesWhatAnIntegerCannotHold) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<DataType, double> wrong[] = {
      {DataType::u8, 256},     {DataType::u8, -1},      {DataType::i8, 128},
      {DataType::i16, -32769}, {DataType::u64, 0x1p64}, {DataType::i64, 0x1p63},
      {DataType::i32, nan},    {DataType::u32, 1e300},  {DataType::boolean, 1}};
  for (const auto& [type, scale] : wrong) EXPECT_THROW(scale_bits(type, scale), Error) << scale;
}

TEST(Fold, ByTheHostsGroup) {
  HostGroup group(0, 1, 0);
  const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
  float x[4] = {0, 0, 0, -1}, y[4] = {0, 0, 0, -1};
  const auto source = [&](int i) { return reinterpret_cast<const std::byte*>(i == 0 ? a : b); };
  const auto destination = [&](int i) { return reinterpret_cast<std::byte*>(i == 0 ? x : y); };
  fold_elements(group, Fold{DataType::f32, ReduceOp::sum, 2, false}, 2, source, 2, destination, 3);
  for (const float* result : {x, y}) {
    EXPECT_EQ(result[0], 11);
    EXPECT_EQ(result[1], 22);
    EXPECT_EQ(result[2], 33);
    EXPECT_EQ(result[3], -1);
  }
  EXPECT_STREQ(fold_instruction_set(), fold_tables().back()->instruction_set);
}

}  // namespace
}  // namespace treering
