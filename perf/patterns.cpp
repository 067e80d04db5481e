#include "perf/patterns.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace treering {
namespace {

/// How a type lays out its bits: sign, exponent, fraction (integers have none of the latter).
struct Format {
  int bits;
  bool has_sign;
  int exponent;
  int fraction;
  bool infinities = true;  ///< false: the largest code is the NaN, and the only one

  bool is_float() const { return fraction > 0; }
  std::uint64_t mask() const { return ~std::uint64_t{0} >> (64 - bits); }
  std::uint64_t sign() const { return std::uint64_t{has_sign} << (bits - 1); }
  std::uint64_t exponents() const { return ((std::uint64_t{1} << exponent) - 1) << fraction; }
  int bias() const { return (1 << (exponent - 1)) - 1; }
  /// The magnitudes of floats from here on are no numbers.
  std::uint64_t end() const { return infinities ? exponents() : mask() >> 1; }
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::f8e4m3:
      return {8, true, 4, 3, false};
    case DataType::f8e5m2:
      return {8, true, 5, 2};
    case DataType::f16:
      return {16, true, 5, 10};
    case DataType::bf16:
      return {16, true, 8, 7};
    case DataType::f32:
      return {32, true, 8, 23};
    case DataType::f64:
      return {64, true, 11, 52};
    default:
      return {static_cast<int>(size_of(type) * 8), is_signed_integer(type), 0, 0};
  }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection that scatters its argument.
std::uint64_t scatter(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// Random bits for an index, common to all ranks; and those of one rank.
std::uint64_t common_bits(const Pattern& p, std::size_t index) {
  return scatter(p.seed * 0x9e3779b97f4a7c15u + index);
}
std::uint64_t rank_bits(const Pattern& p, int rank, std::size_t index) {
  return scatter(common_bits(p, index) +
                 (static_cast<std::uint64_t>(rank) + 1) * 0xd1342543de82ef95u);
}

/// True if the rank is one of at most `most` that contribute to this index.
bool contributes(const Pattern& p, int rank, std::size_t index, int most) {
  if (p.ranks <= most) return true;
  const auto first = static_cast<int>(common_bits(p, index) % static_cast<unsigned>(p.ranks));
  return (rank - first + p.ranks) % p.ranks < most;
}

// A rule knows one way to draw values and to combine them: input() gives the bits of a rank's
// element, value() what the rank contributes by it, in a form that combines exactly; combine() joins
// two of those in any order; result() gives the bits.

struct Moved {
  using Value = std::uint64_t;
  const Pattern& p;
  const Format f = format_of(p.type);

  std::uint64_t input(int rank, std::size_t index) const {
    return rank_bits(p, rank, index) & f.mask();
  }
  Value value(int rank, std::size_t index) const { return input(rank, index); }
  std::uint64_t result(Value v) const { return v & f.mask(); }
};

struct WrappedSum : Moved {
  Value value(int rank, std::size_t index) const {
    const Value v = input(rank, index);
    if (p.op != ReduceOp::premul_sum) return v;
    return v * static_cast<Value>(static_cast<std::int64_t>(pattern_scale(p, rank)));
  }
  Value combine(Value a, Value b) const { return a + b; }
  std::uint64_t result(Value v) const {
    if (p.op != ReduceOp::avg) return v & f.mask();
    const auto n = static_cast<std::uint64_t>(p.ranks);
    const int unused = 64 - f.bits;
    if (!f.has_sign) return (v & f.mask()) / n;
    const auto extended = static_cast<std::int64_t>(v << unused) >> unused;
    return static_cast<std::uint64_t>(extended / static_cast<std::int64_t>(n)) & f.mask();
  }
};

struct WrappedProduct : Moved {
  std::uint64_t input(int rank, std::size_t index) const { return Moved::input(rank, index) | 1; }
  Value value(int rank, std::size_t index) const { return input(rank, index); }
  Value combine(Value a, Value b) const { return a * b; }
};

/// Bits and truth. A few ranks matter to each index; the others are neutral.
struct Bitwise : Moved {
  static constexpr int contributors = 4;
  bool both() const { return p.op == ReduceOp::bit_and; }

  std::uint64_t input(int rank, std::size_t index) const {
    const std::uint64_t bits = Moved::input(rank, index);
    if (p.op == ReduceOp::bit_xor) return bits;
    // A quarter of the bits of those that matter.
    const std::uint64_t few =
        contributes(p, rank, index, contributors) ? bits & scatter(bits) & f.mask() : 0;
    return both() ? ~few & f.mask() : few;
  }
  Value value(int rank, std::size_t index) const { return input(rank, index); }
  Value combine(Value a, Value b) const {
    return p.op == ReduceOp::bit_xor ? a ^ b : both() ? a & b : a | b;
  }
};

/// Truth is any byte but zero. Where all or one must be true, a quarter of the ranks that matter
/// decide.
struct Truth : Moved {
  bool both() const {
    return p.op == ReduceOp::prod || p.op == ReduceOp::min || p.op == ReduceOp::bit_and;
  }

  std::uint64_t input(int rank, std::size_t index) const {
    const std::uint64_t bits = Moved::input(rank, index), chance = rank_bits(p, rank, index) >> 8;
    const bool decides = contributes(p, rank, index, 4) && chance % 4 == 0;
    const bool truth = p.op == ReduceOp::bit_xor ? chance % 2 != 0 : decides != both();
    return truth ? std::max<std::uint64_t>(bits, 1) : 0;
  }
  Value value(int rank, std::size_t index) const { return input(rank, index); }
  Value combine(Value a, Value b) const {
    const bool x = a != 0, y = b != 0;
    return p.op == ReduceOp::bit_xor ? x != y : both() ? x && y : x || y;
  }
};

/// Minimum and maximum by keys that are ordered as the values are. For floats that is the order of
/// sign and magnitude, in which −0 comes before +0.
struct Extremum : Moved {
  std::uint64_t input(int rank, std::size_t index) const {
    std::uint64_t bits = Moved::input(rank, index);
    const std::uint64_t common = common_bits(p, index), lower = f.mask() >> f.bits / 2;
    // Of many numbers one is always the type's extreme: here and there all are near each other.
    if (scatter(common) % 2 != 0) bits = (bits & lower) | (common & f.mask() & ~lower);
    const bool number = !f.is_float() || (bits & ~f.sign()) < f.end();
    return number ? bits : bits ^ (std::uint64_t{1} << f.fraction);
  }
  Value value(int rank, std::size_t index) const { return key(input(rank, index)); }
  Value combine(Value a, Value b) const {
    return p.op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
  }
  std::uint64_t result(Value key) const {
    return f.is_float() && !(key & f.sign()) ? ~key & f.mask() : key ^ f.sign();
  }

  Value key(std::uint64_t bits) const {
    return f.is_float() && (bits & f.sign()) ? ~bits & f.mask() : bits ^ f.sign();
  }
};

/// The nearest float of at most 16 bits, ties to even. The number is far from the end of the range.
std::uint64_t round_to(float x, const Format& f) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint64_t sign = bits >> 31 != 0 ? f.sign() : 0;
  if ((bits & 0x7fffffffu) == 0) return sign;
  const std::uint32_t significand = (bits & 0x7fffffu) | 0x800000u;
  // The exponent's code; numbers below 1 have the last place of 1, and are not normal.
  const int code = static_cast<int>(bits >> 23 & 0xff) - 127 + f.bias();
  const int dropped = 23 - f.fraction + std::max(1 - code, 0);
  if (dropped > 24) return sign;
  const std::uint32_t steps = significand >> dropped, rest = significand << (32 - dropped);
  const bool up = rest > 0x80000000u || (rest == 0x80000000u && steps % 2 != 0);
  const auto exponents = static_cast<std::uint64_t>(std::max(code, 1) - 1) << f.fraction;
  return sign | (exponents + steps + up);
}

/// Sums of multiples of 1/8, held as a number of eighths.
struct FloatSum {
  using Value = std::int64_t;
  const Pattern& p;
  const Format f = format_of(p.type);
  // All contributions together stay within the significand: every partial sum is exact.
  const std::int64_t steps = std::int64_t{2} << f.fraction;
  const int contributors = static_cast<int>(std::min<std::int64_t>(steps, 64));
  const std::int64_t most = steps / std::min(p.ranks, contributors);

  Value value(int rank, std::size_t index) const {
    if (!contributes(p, rank, index, contributors)) return 0;
    const auto range = static_cast<std::uint64_t>(2 * most + 1);
    return static_cast<Value>(rank_bits(p, rank, index) % range) - most;
  }
  Value combine(Value a, Value b) const { return a + b; }
  /// Scales are powers of two, so that this quotient is exact.
  std::uint64_t input(int rank, std::size_t index) const {
    return encode(value(rank, index), pattern_scale(p, rank));
  }
  std::uint64_t result(Value v) const { return encode(v, p.op == ReduceOp::avg ? p.ranks : 1); }

  /// eighths / 8 / divisor: both exact in the accumulator, one rounding by the division, one to the
  /// type.
  std::uint64_t encode(Value eighths, double divisor) const {
    if (f.bits == 64)
      return std::bit_cast<std::uint64_t>(static_cast<double>(eighths) * 0.125 / divisor);
    const float x = static_cast<float>(eighths) * 0.125f / static_cast<float>(divisor);
    return f.bits == 32 ? std::bit_cast<std::uint32_t>(x) : round_to(x, f);
  }
};

struct FloatProduct {
  struct Value {
    bool negative;
    int exponent;
    std::uint64_t fraction;
  };
  const Pattern& p;
  const Format f = format_of(p.type);
  const int contributors = std::min(8, f.bias() - 1);  // exponents of -1, 0, 1 each stay in range

  Value value(int rank, std::size_t index) const {
    if (!contributes(p, rank, index, contributors)) return {false, 0, 0};
    const std::uint64_t bits = rank_bits(p, rank, index);
    // One rank has the full significand; a contributor, since they are those from here on.
    const auto full = static_cast<int>(common_bits(p, index) % static_cast<unsigned>(p.ranks));
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << f.fraction) - 1);
    return {bits >> 63 != 0, static_cast<int>((bits >> 56) % 3) - 1, rank == full ? fraction : 0};
  }
  Value combine(Value a, Value b) const {
    return {a.negative != b.negative, a.exponent + b.exponent, a.fraction | b.fraction};
  }
  std::uint64_t input(int rank, std::size_t index) const { return result(value(rank, index)); }
  std::uint64_t result(Value v) const {
    return (v.negative ? f.sign() : 0) | v.fraction |
           static_cast<std::uint64_t>(v.exponent + f.bias()) << f.fraction;
  }
};

/// Calls `use` with the rule for a pattern.
template <class Use>
auto with_rule(const Pattern& p, Use use) {
  const bool is_float = is_floating_point(p.type);
  if (p.type == DataType::boolean) return use(Truth{{p}});
  switch (p.op) {
    case ReduceOp::min:
    case ReduceOp::max:
      return use(Extremum{{p}});
    case ReduceOp::prod:
      return is_float ? use(FloatProduct{p}) : use(WrappedProduct{{p}});
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
      return use(Bitwise{{p}});
    default:
      return is_float ? use(FloatSum{p}) : use(WrappedSum{{p}});
  }
}

/// Calls `use` with a function that gives a rank's input bits for an index.
template <class Use>
auto with_input(const Pattern& p, int rank, Use use) {
  const auto by = [&](const auto& rule) {
    return use([&rule, rank](std::size_t i) { return rule.input(rank, i); });
  };
  return reduces(p.collective) ? with_rule(p, by) : by(Moved{p});
}

/// Where the part begins that a rank sends to another, in its input.
std::size_t sent_begin(const Pattern& p, int from, int to) {
  std::size_t begin = 0;
  for (int r = 0; r < to; ++r) begin += part_count(p, from, r);
  return begin;
}

/// Where an element of a rank's output comes from.
struct Origin {
  int rank;
  std::size_t index;
};

/// Finds origins one after the other, without much arithmetic.
class Origins {
 public:
  Origins(const Pattern& p, int to) : p_(p), to_(to) {
    if (p.collective == Collective::broadcast || p.collective == Collective::scatter) {
      part_ = {p.root, p.collective == Collective::scatter ? sent_begin(p, p.root, to) : 0};
      end_ = ~std::size_t{0};
    } else {
      enter(0, 0);
    }
  }

  Origin of(std::size_t index) {
    if (index < begin_) enter(0, 0);
    while (index >= end_) enter(part_.rank + 1, end_);
    return {part_.rank, part_.index + (index - begin_)};
  }

 private:
  /// The part of the output that came from `rank`.
  void enter(int rank, std::size_t begin) {
    const bool exchange = even(p_.collective) == Collective::all_to_all;
    part_ = {rank, exchange ? sent_begin(p_, rank, to_) : 0};
    begin_ = begin;
    end_ = begin + part_count(p_, rank, to_);
  }

  const Pattern& p_;
  int to_;
  Origin part_{};
  std::size_t begin_ = 0, end_ = 0;
};

/// Calls `use` with a function that gives a rank's expected output bits for an index.
template <class Use>
auto with_expected(const Pattern& p, int rank, Use use) {
  if (!reduces(p.collective)) {
    const Moved moved{p};
    Origins origins(p, rank);
    return use([&](std::size_t i) {
      const Origin origin = origins.of(i);
      return moved.value(origin.rank, origin.index);
    });
  }
  const bool scatters = even(p.collective) == Collective::reduce_scatter;
  const std::size_t from = scatters ? sent_begin(p, rank, rank) : 0;
  return with_rule(p, [&](const auto& rule) {
    return use([&, from](std::size_t i) {
      auto sum = rule.value(0, from + i);
      for (int r = 1; r < p.ranks; ++r) sum = rule.combine(sum, rule.value(r, from + i));
      return rule.result(sum);
    });
  });
}

template <class Word, class BitsOf>
void fill_words(BitsOf bits_of, std::size_t begin, std::size_t count, void* destination) {
  auto* at = static_cast<std::byte*>(destination);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<Word>(bits_of(begin + i));
    std::memcpy(at + i * sizeof(Word), &word, sizeof(Word));
  }
}

template <class Word, class BitsOf>
std::size_t count_words(BitsOf bits_of, std::size_t begin, std::size_t count, const void* actual) {
  const auto* at = static_cast<const std::byte*>(actual);
  std::size_t different = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, at + i * sizeof(Word), sizeof(Word));
    different += word != static_cast<Word>(bits_of(begin + i));
  }
  return different;
}

template <class BitsOf>
void fill(DataType type, BitsOf bits_of, std::size_t begin, std::size_t count, void* destination) {
  switch (size_of(type)) {
    case 1:
      return fill_words<std::uint8_t>(bits_of, begin, count, destination);
    case 2:
      return fill_words<std::uint16_t>(bits_of, begin, count, destination);
    case 4:
      return fill_words<std::uint32_t>(bits_of, begin, count, destination);
    default:
      return fill_words<std::uint64_t>(bits_of, begin, count, destination);
  }
}

template <class BitsOf>
std::size_t count_different(DataType type, BitsOf bits_of, std::size_t begin, std::size_t count,
                            const void* actual) {
  switch (size_of(type)) {
    case 1:
      return count_words<std::uint8_t>(bits_of, begin, count, actual);
    case 2:
      return count_words<std::uint16_t>(bits_of, begin, count, actual);
    case 4:
      return count_words<std::uint32_t>(bits_of, begin, count, actual);
    default:
      return count_words<std::uint64_t>(bits_of, begin, count, actual);
  }
}

}  // namespace

std::size_t part_count(const Pattern& p, int from, int to) noexcept {
  const auto random = [&](int a, int b) -> std::size_t {
    const std::uint64_t bits = scatter(
        p.seed ^ scatter(static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b)));
    return bits % 4 == 0 ? 0 : (bits >> 8) % (2 * p.count + 1);
  };
  switch (p.collective) {
    case Collective::reduce_scatter_v:
      return random(to, to);
    case Collective::all_gather_v:
      return random(from, from);
    case Collective::all_to_all_v:
      return p.symmetric ? random(std::min(from, to), std::max(from, to)) : random(from, to);
    default:
      return p.count;
  }
}

std::vector<std::size_t> sent_counts(const Pattern& p, int rank) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < p.ranks; ++r) counts.push_back(part_count(p, rank, r));
  return counts;
}

std::vector<std::size_t> received_counts(const Pattern& p, int rank) {
  std::vector<std::size_t> counts;
  for (int r = 0; r < p.ranks; ++r) counts.push_back(part_count(p, r, rank));
  return counts;
}

double pattern_scale(const Pattern& p, int rank) {
  if (p.op != ReduceOp::premul_sum) return 1;
  if (!is_floating_point(p.type)) return 3 + 2 * (rank % 50);  // odd: all bits count
  constexpr double scales[] = {2, -0.5, -1, 0.5, -2, 1};
  return scales[rank % std::size(scales)];
}

std::size_t input_elements(const Pattern& p, int rank) noexcept {
  switch (p.collective) {
    case Collective::barrier:
      return 0;
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return sent_begin(p, rank, p.ranks);
    case Collective::all_gather_v:
      return part_count(p, rank, rank);
    case Collective::broadcast:
      return rank == p.root ? p.count : 0;
    case Collective::scatter:
      return rank == p.root ? sent_begin(p, rank, p.ranks) : 0;
    default:
      return p.count;
  }
}

std::size_t output_elements(const Pattern& p, int rank) noexcept {
  std::size_t all = 0;
  for (int r = 0; r < p.ranks; ++r) all += part_count(p, r, rank);
  switch (p.collective) {
    case Collective::barrier:
      return 0;
    case Collective::all_gather:
    case Collective::all_gather_v:
    case Collective::all_to_all:
    case Collective::all_to_all_v:
      return all;
    case Collective::reduce_scatter_v:
      return part_count(p, rank, rank);
    case Collective::gather:
      return rank == p.root ? all : 0;
    case Collective::reduce:
      return rank == p.root ? p.count : 0;
    default:
      return p.count;
  }
}

std::size_t most_elements(const Pattern& p) noexcept {
  std::size_t most = 0;
  for (int r = 0; r < p.ranks; ++r)
    most = std::max({most, input_elements(p, r), output_elements(p, r)});
  return most;
}

std::size_t in_place_input(const Pattern& p, int rank) noexcept {
  std::size_t before = 0;
  for (int r = 0; r < rank; ++r) before += part_count(p, r, rank);
  const bool gathers = even(p.collective) == Collective::all_gather ||
                       (p.collective == Collective::gather && rank == p.root);
  return gathers ? before : 0;
}

std::size_t in_place_output(const Pattern& p, int rank) noexcept {
  const bool scatters = even(p.collective) == Collective::reduce_scatter ||
                        (p.collective == Collective::scatter && rank == p.root);
  return scatters ? sent_begin(p, rank, rank) : 0;
}

std::uint64_t input_bits(const Pattern& p, int rank, std::size_t index) {
  return with_input(p, rank, [&](auto bits_of) { return std::uint64_t{bits_of(index)}; });
}

std::uint64_t expected_bits(const Pattern& p, int rank, std::size_t index) {
  return with_expected(p, rank, [&](auto bits_of) { return std::uint64_t{bits_of(index)}; });
}

void fill_input(const Pattern& p, int rank, std::size_t begin, std::size_t count,
                void* destination) {
  with_input(p, rank, [&](auto bits_of) { fill(p.type, bits_of, begin, count, destination); });
}

void fill_expected(const Pattern& p, int rank, std::size_t begin, std::size_t count,
                   void* destination) {
  with_expected(p, rank, [&](auto bits_of) { fill(p.type, bits_of, begin, count, destination); });
}

std::size_t count_wrong(const Pattern& p, int rank, std::size_t begin, std::size_t count,
                        const void* actual) {
  return with_expected(p, rank, [&](auto bits_of) {
    return count_different(p.type, bits_of, begin, count, actual);
  });
}

std::size_t count_changed(const Pattern& p, int rank, std::size_t begin, std::size_t count,
                          const void* actual) {
  return with_input(p, rank, [&](auto bits_of) {
    return count_different(p.type, bits_of, begin, count, actual);
  });
}

}  // namespace treering
