#pragma once

// The fold: the only way in which kernels touch the elements of buffers.
//
//     for each element e:   x = source[0][e] ∘ source[1][e] ∘ … ∘ source[n-1][e]
//                           every destination[e] = x
//
// One source makes it a copy. Sources are combined from left to right in the type's accumulator
// (f32 for f16 and bf16, the type itself otherwise) and rounded once, at the end. A destination may
// be the same address as a source, but must not overlap one otherwise.

#include <cstddef>
#include <cstdint>

#include "kernels/exec/qualifiers.hpp"
#include "treering/types.hpp"

namespace treering {

/// What a fold does with the elements.
struct Fold {
  DataType type;
  ReduceOp op;
  std::int32_t divisor;  ///< for avg: the number of ranks in the fold that finishes it, 1 before
  bool streaming;        ///< bypass the caches when storing (host)
};

/// By what sums are divided: 1 unless they are averages.
TREERING_PORTABLE constexpr std::int32_t divisor_of(const Fold& how) {
  return how.op == ReduceOp::avg ? how.divisor : 1;
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
