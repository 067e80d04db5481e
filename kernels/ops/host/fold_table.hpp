#pragma once

// The host's folds: for each instruction set a table of loops, one per type and operator.
//
//     fold_loops.cpp ──compiled as──►  baseline   AVX2   AVX-512
//                                          └────────┴───────┴──► fold_tables(), best last

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops/fold.hpp"
#include "treering/types.hpp"

namespace treering {

/// What a fold works on: the first bytes, whole elements, of every source and destination.
struct FoldRange {
  const std::byte* const* sources;
  int source_count;
  std::byte* const* destinations;
  int destination_count;
  std::size_t bytes;
};

using FoldLoop = void (*)(const Fold&, const FoldRange&);

/// The loops of one instruction set, whose name is for people. Null where the operator does not
/// apply to the type.
struct FoldTable {
  const char* instruction_set;
  FoldLoop loops[data_types][reduce_ops];
};

/// The tables that this processor can run; the last is the one that folds use.
std::span<const FoldTable* const> fold_tables() noexcept;

/// A whole fold by a table of one's choice: copies, streaming and all.
void fold_with(const FoldTable&, const Fold&, const FoldRange&) noexcept;

}  // namespace treering
