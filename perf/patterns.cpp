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

  bool is_float() const { return fraction > 0; }
  std::uint64_t mask() const { return ~std::uint64_t{0} >> (64 - bits); }
  std::uint64_t sign() const { return std::uint64_t{has_sign} << (bits - 1); }
  std::uint64_t exponents() const { return ((std::uint64_t{1} << exponent) - 1) << fraction; }
};

Format format_of(DataType type) {
  switch (type) {
    case DataType::f16:
      return {16, true, 5, 10};
    case DataType::bf16:
      return {16, true, 8, 7};
    case DataType::f32:
      return {32, true, 8, 23};
    case DataType::f64:
      return {64, true, 11, 52};
    default:
      const bool is_signed = type == DataType::i8 || type == DataType::i32 || type == DataType::i64;
      return {static_cast<int>(size_of(type) * 8), is_signed, 0, 0};
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

// A rule knows one way to draw values and to combine them: value() is a rank's contribution in a
// form that combines exactly, combine() joins two of them in any order, input() and result() give
// the bits.

struct Moved {
  using Value = std::uint64_t;
  const Pattern& p;
  const Format f = format_of(p.type);

  Value value(int rank, std::size_t index) const { return rank_bits(p, rank, index) & f.mask(); }
  std::uint64_t input(Value v) const { return v; }
};

struct WrappedSum : Moved {
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
  Value value(int rank, std::size_t index) const { return Moved::value(rank, index) | 1; }
  Value combine(Value a, Value b) const { return a * b; }
  std::uint64_t result(Value v) const { return v & f.mask(); }
};

/// Minimum and maximum by keys that are ordered as the values are. For floats that is the order of
/// sign and magnitude, in which −0 comes before +0.
struct Extremum : Moved {
  Value value(int rank, std::size_t index) const {
    const std::uint64_t bits = Moved::value(rank, index);
    const bool infinite = f.is_float() && (bits & f.exponents()) == f.exponents();
    return key(infinite ? bits ^ (std::uint64_t{1} << f.fraction) : bits);
  }
  Value combine(Value a, Value b) const {
    return p.op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
  }
  std::uint64_t input(Value v) const { return bits_of(v); }
  std::uint64_t result(Value v) const { return bits_of(v); }

  Value key(std::uint64_t bits) const {
    return f.is_float() && (bits & f.sign()) ? ~bits & f.mask() : bits ^ f.sign();
  }
  std::uint64_t bits_of(Value key) const {
    return f.is_float() && !(key & f.sign()) ? ~key & f.mask() : key ^ f.sign();
  }
};

/// The nearest 16-bit float of a sum or an average. Those are normal or zero, and never halfway: a
/// quotient with one digit more than the type has would come from a sum with at least as many.
std::uint64_t round_to_16_bits(float x, const Format& f) {
  if (x == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 31 << 15, magnitude = bits & 0x7fffffffu;
  const std::uint32_t bias = (1u << (f.exponent - 1)) - 1;
  const int excess = 23 - f.fraction;  // digits that are dropped; the sum carries where it must
  return sign | (magnitude - ((127 - bias) << 23) + (1u << (excess - 1))) >> excess;
}

/// Sums of multiples of 1/8, held as a number of eighths.
struct FloatSum {
  using Value = std::int64_t;
  static constexpr int contributors = 64;
  const Pattern& p;
  const Format f = format_of(p.type);
  // All contributions together stay within the significand: every partial sum is exact.
  const std::int64_t most = (std::int64_t{2} << f.fraction) / std::min(p.ranks, contributors);

  Value value(int rank, std::size_t index) const {
    if (!contributes(p, rank, index, contributors)) return 0;
    const auto range = static_cast<std::uint64_t>(2 * most + 1);
    return static_cast<Value>(rank_bits(p, rank, index) % range) - most;
  }
  Value combine(Value a, Value b) const { return a + b; }
  std::uint64_t input(Value v) const { return encode(v, 1); }
  std::uint64_t result(Value v) const { return encode(v, p.op == ReduceOp::avg ? p.ranks : 1); }

  /// eighths / 8 / divisor: both exact in the accumulator, one rounding by the division, one to the
  /// type.
  std::uint64_t encode(Value eighths, int divisor) const {
    if (f.bits == 64)
      return std::bit_cast<std::uint64_t>(static_cast<double>(eighths) * 0.125 / divisor);
    const float x = static_cast<float>(eighths) * 0.125f / static_cast<float>(divisor);
    return f.bits == 32 ? std::bit_cast<std::uint32_t>(x) : round_to_16_bits(x, f);
  }
};

struct FloatProduct {
  struct Value {
    bool negative;
    int exponent;
    std::uint64_t fraction;
  };
  static constexpr int contributors = 8;  // exponents of -1, 0, 1 each stay in the range of f16
  const Pattern& p;
  const Format f = format_of(p.type);

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
  std::uint64_t input(Value v) const { return result(v); }
  std::uint64_t result(Value v) const {
    const int bias = (1 << (f.exponent - 1)) - 1;
    return (v.negative ? f.sign() : 0) | v.fraction |
           static_cast<std::uint64_t>(v.exponent + bias) << f.fraction;
  }
};

/// Calls `use` with the rule for a pattern.
template <class Use>
auto with_rule(const Pattern& p, Use use) {
  const bool is_float = format_of(p.type).is_float();
  switch (p.op) {
    case ReduceOp::min:
    case ReduceOp::max:
      return use(Extremum{p});
    case ReduceOp::prod:
      return is_float ? use(FloatProduct{p}) : use(WrappedProduct{{p}});
    default:
      return is_float ? use(FloatSum{p}) : use(WrappedSum{{p}});
  }
}

/// Calls `use` with a function that gives a rank's input bits for an index.
template <class Use>
auto with_input(const Pattern& p, int rank, Use use) {
  const auto by = [&](const auto& rule) {
    return use([&rule, rank](std::size_t i) { return rule.input(rule.value(rank, i)); });
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
