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
  using Stored = typename VectorElement<Element>::Stored;

  /// `read(i)` loads a vector of source i; they are combined from left to right.
  template <class Read>
  TREERING_ARITHMETIC static Stored reduce(int sources, std::int32_t divisor, Read read) {
    auto x = VectorElement<Element>::widen(read(0));
    for (int i = 1; i < sources; ++i)
      x = combine_all<Op>(x, VectorElement<Element>::widen(read(i)));
    return VectorElement<Element>::narrow(finish_all<Op>(x, divisor));
  }

  /// All whole vectors. Fans that are known here keep their addresses in registers; 0 stands for
  /// any.
  template <int known_sources, int known_destinations>
  TREERING_ARITHMETIC static void whole(const FoldRange& range, std::size_t end) {
    const int sources = known_sources > 0 ? known_sources : range.source_count;
    const int destinations = known_destinations > 0 ? known_destinations : range.destination_count;
    const std::int32_t divisor = range.divisor;
    const std::byte* from[2] = {range.sources[0], range.sources[known_sources > 1 ? 1 : 0]};
    std::byte* to[2] = {range.destinations[0], range.destinations[known_destinations > 1 ? 1 : 0]};
    for (std::size_t at = 0; at < end; at += sizeof(Stored)) {
      const Stored x = reduce(sources, divisor, [&](int i) {
        return load<Stored>((known_sources > 0 ? from[i] : range.sources[i]) + at);
      });
      for (int i = 0; i < destinations; ++i)
        store((known_destinations > 0 ? to[i] : range.destinations[i]) + at, x);
    }
  }

  /// What remains: less than a vector.
  static void rest(const FoldRange& range, std::size_t at, std::size_t bytes) {
    const Stored x = reduce(range.source_count, range.divisor,
                            [&](int i) { return load_part<Stored>(range.sources[i] + at, bytes); });
    for (int i = 0; i < range.destination_count; ++i)
      store_part(range.destinations[i] + at, x, bytes);
  }

  static void loop(const FoldRange& range) {
    const std::size_t bytes = range.count * sizeof(typename Element::Stored);
    const std::size_t end = bytes - bytes % sizeof(Stored);
    if (range.source_count == 2 && range.destination_count == 1)
      whole<2, 1>(range, end);
    else if (range.source_count == 2 && range.destination_count == 2)
      whole<2, 2>(range, end);
    else if (range.destination_count == 1)
      whole<0, 1>(range, end);
    else
      whole<0, 0>(range, end);
    if (end < bytes) rest(range, end, bytes - end);
  }
};

constexpr FoldTable make_table() {
  FoldTable table{TREERING_FOLD_NAME, {}};
  for (int type = 0; type < data_types; ++type)
    for (int op = 0; op < reduce_ops; ++op)
      with_element(static_cast<DataType>(type), [&]<class Element>(Element) {
        with_operator(static_cast<ReduceOp>(op),
                      [&]<class Op>(Op) { table.loops[type][op] = Folding<Element, Op>::loop; });
      });
  return table;
}

}  // namespace

extern const FoldTable TREERING_FOLD_TABLE;
constinit const FoldTable TREERING_FOLD_TABLE = make_table();

}  // namespace treering
