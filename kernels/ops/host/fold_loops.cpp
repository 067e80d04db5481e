// The loops of the host's folds. This file is compiled once for each instruction set;
// TREERING_FOLD_TABLE and TREERING_FOLD_NAME name what comes out.
//
// Nothing in here may leave a function behind that the linker shares between instruction sets: what
// is not in the unnamed namespace is always inlined.

#include <cstddef>
#include <cstdint>

#include "kernels/ops/elements.hpp"
#include "kernels/ops/host/fold_table.hpp"
#include "kernels/ops/host/vectors.hpp"

namespace treering {
namespace {

template <class Element, class Op>
struct Folding {
  using Vectors = VectorElement<Element>;
  using Stored = typename Vectors::Stored;

  /// `read(i)` loads a vector of source i; they are combined from left to right.
  template <class Read>
  TREERING_ARITHMETIC static Stored reduce(const Fold& how, int sources, Read read) {
    const auto contribution = [&](int i) {
      const auto x = Vectors::widen(read(i));
      if constexpr (std::is_same_v<Op, PremulSum>)
        if (i == how.own) return Vectors::widen(Vectors::narrow(scale_all(x, how.scale)));
      return x;
    };
    auto x = contribution(0);
    for (int i = 1; i < sources; ++i) x = combine_all<Op>(x, contribution(i));
    return Vectors::narrow(finish_all<Op>(x, divisor_of(how)));
  }

  /// All whole vectors. Fans that are known here keep their addresses in registers; 0 stands for
  /// any.
  template <int known_sources, int known_destinations>
  TREERING_ARITHMETIC static void whole(const Fold& shared_how, const FoldRange& range,
                                        std::size_t end) {
    const Fold how = shared_how;  // which no store can change
    const int sources = known_sources > 0 ? known_sources : range.source_count;
    const int destinations = known_destinations > 0 ? known_destinations : range.destination_count;
    const std::byte* from[2] = {range.sources[0], range.sources[known_sources > 1 ? 1 : 0]};
    std::byte* to[2] = {range.destinations[0], range.destinations[known_destinations > 1 ? 1 : 0]};
    for (std::size_t at = 0; at < end; at += sizeof(Stored)) {
      const Stored x = reduce(how, sources, [&](int i) {
        return load<Stored>((known_sources > 0 ? from[i] : range.sources[i]) + at);
      });
      for (int i = 0; i < destinations; ++i)
        store((known_destinations > 0 ? to[i] : range.destinations[i]) + at, x);
    }
  }

  /// What remains: less than a vector.
  static void rest(const Fold& how, const FoldRange& range, std::size_t at, std::size_t bytes) {
    const Stored x = reduce(how, range.source_count,
                            [&](int i) { return load_part<Stored>(range.sources[i] + at, bytes); });
    for (int i = 0; i < range.destination_count; ++i)
      store_part(range.destinations[i] + at, x, bytes);
  }

  /// Where the arithmetic outweighs the loading of addresses, one loop serves all fans: the others
  /// would be the larger part of this file's code.
  static constexpr bool heavy =
      sizeof(typename Element::Stored) < sizeof(typename Element::Accumulator) / 2 ||
      std::is_same_v<Op, PremulSum>;

  static void loop(const Fold& how, const FoldRange& range) {
    // Which the compiler then knows: fewer cases for the rest.
    constexpr std::size_t granule = is_bitwise<Op> ? 1 : sizeof(typename Element::Stored);
    const std::size_t bytes = range.bytes / granule * granule;
    const std::size_t end = bytes - bytes % sizeof(Stored);
    if constexpr (heavy)
      whole<0, 0>(how, range, end);  // NOLINT(bugprone-branch-clone): as the last, chosen otherwise
    else if (range.source_count == 2 && range.destination_count == 1)
      whole<2, 1>(how, range, end);
    else if (range.source_count == 2 && range.destination_count == 2)
      whole<2, 2>(how, range, end);
    else if (range.destination_count == 1)
      whole<0, 1>(how, range, end);
    else
      whole<0, 0>(how, range, end);
    if (end < bytes) rest(how, range, end, bytes - end);
  }
};

constexpr FoldTable make_table() {
  FoldTable table{TREERING_FOLD_NAME, {}};
  for (int t = 0; t < data_types; ++t)
    for (int o = 0; o < reduce_ops; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (!applies(op, type)) continue;
      with_reduction(type, op, [&]<class Element, class Op>(Element, Op) {
        table.loops[t][o] = Folding<typename PackElement<Element, Op>::Type, Op>::loop;
      });
    }
  return table;
}

}  // namespace

extern const FoldTable TREERING_FOLD_TABLE;
constinit const FoldTable TREERING_FOLD_TABLE = make_table();

}  // namespace treering
