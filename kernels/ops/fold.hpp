#pragma once

// The fold: the only way in which kernels touch the elements of buffers.
//
//     for each element e:   x = source[0][e] ∘ source[1][e] ∘ … ∘ source[n-1][e]
//                           every destination[e] = x
//
// One source makes it a copy (see is_copy). Sources are combined from left to right in the type's
// accumulator (f32 for narrower floats, the type itself otherwise) and rounded once, at the end. A
// destination may be the same address as a source, but must not overlap one otherwise.
//
// Under premul_sum this rank's own contribution is multiplied by `scale` and rounded to the type
// first, as if the caller had done it: that is what peers' messages are, too.

#include <cstddef>
#include <cstdint>

#include "kernels/exec/qualifiers.hpp"
#include "treering/types.hpp"

namespace treering {

/// What a fold does with the elements.
struct Fold {
  DataType type;
  ReduceOp op;
  std::int32_t divisor;     ///< for avg: the number of ranks in the fold that finishes it, 1 before
  bool streaming;           ///< bypass the caches when storing (host)
  std::int32_t own = -1;    ///< for premul_sum: the source that is yet to be scaled; -1: none
  std::uint64_t scale = 0;  ///< for premul_sum: by what, as scale_bits() gives it
};

/// By what sums are divided: 1 unless they are averages.
TREERING_PORTABLE constexpr std::int32_t divisor_of(const Fold& how) {
  return how.op == ReduceOp::avg ? how.divisor : 1;
}

/// Which source is scaled first, or -1.
TREERING_PORTABLE constexpr std::int32_t scaled_source(const Fold& how) {
  return how.op == ReduceOp::premul_sum ? how.own : -1;
}

/// True if the only source passes bit for bit, and not through the arithmetic.
TREERING_PORTABLE constexpr bool is_copy(const Fold& how, int sources) {
  return sources == 1 && divisor_of(how) == 1 && scaled_source(how) != 0;
}

/// The most sources or destinations of one fold: bounds the ranks that one node can have.
inline constexpr int max_fan = 1024;

// Each execution defines, to be found by its group:
//
//   template <class SourceOf, class DestinationOf>
//   void fold_elements(Group&, const Fold&, int sources, SourceOf source, int destinations,
//                      DestinationOf destination, std::size_t count);
//
// `source(i)` and `destination(i)` give the addresses, aligned to the element; all threads of the
// group call it alike. host: kernels/ops/host/, one function per type, operator and instruction
// set, called through a table. cuda, simt: kernels/ops/device_fold.hpp, loops over 16-byte packs.

}  // namespace treering
