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

#include "kernels/ops/device_fold.hpp"
#include "kernels/ops/float16.hpp"
#include "kernels/ops/host/fold_host.hpp"
#include "treering/types.hpp"

namespace treering {
namespace {

constexpr DataType all_types[] = {DataType::u8,  DataType::i8,  DataType::i32, DataType::u32,
                                  DataType::i64, DataType::u64, DataType::f16, DataType::bf16,
                                  DataType::f32, DataType::f64};
constexpr ReduceOp all_ops[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max,
                                ReduceOp::avg};
static_assert(std::size(all_types) == data_types && std::size(all_ops) == reduce_ops);

bool is_float_type(DataType type) {
  return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 ||
         type == DataType::f64;
}

// ---- The reference: nothing in it is shared with the folds. ----

/// A binary floating-point format with `mantissa` stored bits.
struct Format {
  int bits, mantissa;
  int bias() const { return (1 << (bits - mantissa - 2)) - 1; }
};
constexpr Format f16_format{16, 10}, bf16_format{16, 7};

double decode(Format format, std::uint32_t pattern) {
  const int exponents = (1 << (format.bits - 1 - format.mantissa)) - 1;
  const int exponent = static_cast<int>(pattern >> format.mantissa) & exponents;
  const std::uint32_t mantissa = pattern & ((1u << format.mantissa) - 1);
  const double sign = (pattern >> (format.bits - 1)) != 0 ? -1.0 : 1.0;
  if (exponent == exponents)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  const double significand = exponent == 0 ? mantissa : mantissa + (1u << format.mantissa);
  return sign *
         std::ldexp(significand, (exponent == 0 ? 1 : exponent) - format.bias() - format.mantissa);
}

/// Rounds by the definition: to a multiple of the last place, ties to even (nearbyint), then
/// encodes.
std::uint32_t encode(Format format, double value) {
  const std::uint32_t sign = std::signbit(value) ? 1u << (format.bits - 1) : 0;
  const std::uint32_t infinity = ((1u << (format.bits - 1 - format.mantissa)) - 1)
                                 << format.mantissa;
  if (std::isnan(value)) return sign | infinity | 1u << (format.mantissa - 1);
  value = std::fabs(value);
  if (std::isinf(value)) return sign | infinity;
  const int smallest = 1 - format.bias();
  const int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  const double places = std::nearbyint(std::ldexp(value, format.mantissa - exponent));
  const auto steps = static_cast<std::uint32_t>(places);  // below 2^(mantissa + 1), or just that
  const std::uint32_t pattern =
      (static_cast<std::uint32_t>(exponent - smallest) << format.mantissa) + steps;
  return sign | std::min(pattern, infinity);
}

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
    default:
      return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
  }
}

template <class T>
T expected(ReduceOp op, std::int32_t divisor, const std::vector<T>& values) {
  T x = values[0];
  if constexpr (std::is_integral_v<T>) {
    for (std::size_t i = 1; i < values.size(); ++i) x = wrap(op, x, values[i]);
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return op == ReduceOp::avg ? static_cast<T>(static_cast<Wide>(x) / static_cast<Wide>(divisor))
                               : x;
  } else {
    for (std::size_t i = 1; i < values.size(); ++i) {
      const T y = values[i];
      const bool nan = std::isnan(x) || std::isnan(y);
      const bool x_less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
      if (op == ReduceOp::prod)
        x = x * y;
      else if (op == ReduceOp::min)
        x = nan ? std::numeric_limits<T>::quiet_NaN() : (x_less ? x : y);
      else if (op == ReduceOp::max)
        x = nan ? std::numeric_limits<T>::quiet_NaN() : (x_less ? y : x);
      else
        x = x + y;
    }
    return op == ReduceOp::avg ? x / static_cast<T>(divisor) : x;
  }
}

template <class T>
void expect_element(ReduceOp op, std::int32_t divisor, const std::vector<const std::byte*>& sources,
                    std::size_t i, std::byte* result) {
  std::vector<T> values(sources.size());
  for (std::size_t s = 0; s < sources.size(); ++s)
    std::memcpy(&values[s], sources[s] + i * sizeof(T), sizeof(T));
  const T x = expected(op, divisor, values);
  std::memcpy(result + i * sizeof(T), &x, sizeof(T));
}

void expect_half(Format format, ReduceOp op, std::int32_t divisor,
                 const std::vector<const std::byte*>& sources, std::size_t i, std::byte* result) {
  std::vector<float> values(sources.size());
  for (std::size_t s = 0; s < sources.size(); ++s) {
    std::uint16_t bits;
    std::memcpy(&bits, sources[s] + i * 2, 2);
    values[s] = static_cast<float>(decode(format, bits));
  }
  const auto x = static_cast<std::uint16_t>(encode(format, expected(op, divisor, values)));
  std::memcpy(result + i * 2, &x, 2);
}

std::vector<std::byte> reference(DataType type, ReduceOp op, std::int32_t divisor,
                                 const std::vector<const std::byte*>& sources, std::size_t count) {
  std::vector<std::byte> result(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) switch (type) {
      case DataType::u8:
        expect_element<std::uint8_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::i8:
        expect_element<std::int8_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::i32:
        expect_element<std::int32_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::u32:
        expect_element<std::uint32_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::i64:
        expect_element<std::int64_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::u64:
        expect_element<std::uint64_t>(op, divisor, sources, i, result.data());
        break;
      case DataType::f16:
        expect_half(f16_format, op, divisor, sources, i, result.data());
        break;
      case DataType::bf16:
        expect_half(bf16_format, op, divisor, sources, i, result.data());
        break;
      case DataType::f32:
        expect_element<float>(op, divisor, sources, i, result.data());
        break;
      case DataType::f64:
        expect_element<double>(op, divisor, sources, i, result.data());
        break;
    }
  return result;
}

bool is_nan(DataType type, const std::byte* element) {
  switch (type) {
    case DataType::f16:
    case DataType::bf16: {
      std::uint16_t bits;
      std::memcpy(&bits, element, 2);
      return std::isnan(decode(type == DataType::f16 ? f16_format : bf16_format, bits));
    }
    case DataType::f32: {
      float x;
      std::memcpy(&x, element, 4);
      return std::isnan(x);
    }
    case DataType::f64: {
      double x;
      std::memcpy(&x, element, 8);
      return std::isnan(x);
    }
    default:
      return false;
  }
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
        range.destination_count, [&](int i) { return range.destinations[i]; }, range.count);
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

/// Numbers of every kind: small ones, any bit pattern, and the special ones.
void fill(Buffer& buffer, DataType type, std::size_t count, std::mt19937_64& random) {
  const std::size_t size = size_of(type);
  const int mantissa = type == DataType::f16    ? 10
                       : type == DataType::bf16 ? 7
                       : type == DataType::f32  ? 23
                                                : 52;
  const int width = static_cast<int>(size) * 8;
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  const std::uint64_t infinity = (sign - 1) >> mantissa << mantissa;
  const std::uint64_t one = (infinity >> 1) >> mantissa << mantissa;
  const std::uint64_t specials[] = {0,
                                    sign,
                                    infinity,
                                    sign | infinity,
                                    infinity + 1,
                                    infinity | (infinity >> 1),
                                    1,
                                    sign | 1,
                                    (std::uint64_t{1} << mantissa) - 1,
                                    infinity - 1,
                                    one};
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random();
    const std::uint64_t kind = random() % 8;
    if (is_float_type(type)) {
      if (kind == 0) bits = specials[random() % std::size(specials)];
      if (kind > 1)  // near one, so that sums have something to round
        bits = one + (bits % (std::uint64_t{1} << (mantissa + 2))) + (bits & sign ? sign : 0);
    } else if (kind > 1) {
      bits = bits % 15 - 7;
    }
    std::memcpy(buffer.data() + i * size, &bits, size);
  }
}

struct Shape {
  DataType type;
  ReduceOp op;
  int sources, destinations;
  std::size_t count, source_skew,
      destination_skew;  // skews in elements, growing with the buffer's number
  std::int32_t divisor;
};

std::string text(const Shape& shape, const Way& way) {
  return std::string(name(shape.type)) + " " + name(shape.op) + " × " +
         std::to_string(shape.count) + ", " + std::to_string(shape.sources) + " → " +
         std::to_string(shape.destinations) + ", skews " + std::to_string(shape.source_skew) + " " +
         std::to_string(shape.destination_skew) + ", divisor " + std::to_string(shape.divisor) +
         ": " + way.name;
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
  const bool copies = shape.sources == 1 && !(shape.op == ReduceOp::avg && shape.divisor != 1);
  const std::vector<std::byte> wanted =
      copies ? std::vector<std::byte>(sources[0], sources[0] + bytes)
             : reference(shape.type, shape.op, shape.divisor, sources, shape.count);

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
      fold_by(way, {shape.type, shape.op, shape.divisor, false},
              {from.data(), shape.sources, to.data(), shape.destinations, shape.count,
               divisor_of({shape.type, shape.op, shape.divisor, false})});
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
  for (ReduceOp op : all_ops)
    for (std::size_t count : {0, 1, 3, 7, 63, 64, 65, 1000})
      for (int sources : {1, 2, 3, 5, 17})
        for (int destinations : {1, 2, 3})
          for (auto [source_skew, destination_skew] :
               {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {0, 1}, {3, 0}}) {
            ++seed;
            const auto divisor = static_cast<std::int32_t>(seed % 3 == 0 ? 300 : sources);
            check({GetParam(), op, sources, destinations, count, source_skew, destination_skew,
                   divisor},
                  seed);
            if (HasFatalFailure()) return;
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

INSTANTIATE_TEST_SUITE_P(Types, FoldTest, testing::ValuesIn(all_types),
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
          {from.data(), static_cast<int>(from.size()), &to, 1, result.size(), divisor_of(how)});
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
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
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

/// Around every representable value and every midpoint, and at random.
template <class Conversion>
void check_rounding(Format format) {
  const auto check_one = [&](std::uint32_t bits) {
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(decode(format, Conversion::narrow(value)))) << bits;
    } else {
      ASSERT_EQ(Conversion::narrow(value), encode(format, static_cast<double>(value)))
          << std::hex << bits;
    }
  };
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const double here = decode(format, pattern), next = decode(format, (pattern + 1) & 0xffff);
    for (double value : {here, (here + next) / 2}) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      for (std::uint32_t step : {0u, 1u, ~0u}) check_one(bits + step);
    }
  }
  std::mt19937 random(5);
  for (int i = 0; i < 1000000; ++i) check_one(static_cast<std::uint32_t>(random()));
}

TEST(Float16, EveryPatternRoundTrips) { check_every_pattern<Float16>(f16_format); }
TEST(Float16, RoundsToNearestEven) { check_rounding<Float16>(f16_format); }
TEST(BFloat16, EveryPatternRoundTrips) { check_every_pattern<BFloat16>(bf16_format); }
TEST(BFloat16, RoundsToNearestEven) { check_rounding<BFloat16>(bf16_format); }

/// Every f16 and bf16 through the vectors of every instruction set: times one keeps the number.
TEST(Fold, EveryHalfTimesOne) {
  std::vector<std::uint16_t> all(0x10000);
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const Way& way : all_ways())
    for (auto [type, one] : {std::pair{DataType::f16, 0x3c00}, {DataType::bf16, 0x3f80}}) {
      const std::vector<std::uint16_t> ones(all.size(), static_cast<std::uint16_t>(one));
      const auto result =
          fold_values<std::uint16_t>(way, {type, ReduceOp::prod, 1, false}, {all, ones});
      EXPECT_EQ(first_difference(type, reinterpret_cast<const std::byte*>(result.data()),
                                 reinterpret_cast<const std::byte*>(all.data()), all.size()),
                all.size())
          << way.name;
    }
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
