#pragma once

// The `host` execution's fold: collects the addresses and calls a loop out of a table.

#include <cstddef>

#include "kernels/exec/host/group.hpp"
#include "kernels/ops/fold.hpp"
#include "kernels/ops/host/fold_table.hpp"

namespace treering {

/// Folds with the best instruction set that the processor has.
void fold_on_host(const Fold&, const FoldRange&) noexcept;

/// The instruction set of the host's folds, for people: "AVX-512", "AVX2" or "baseline".
const char* fold_instruction_set() noexcept;

/// See fold.hpp.
template <class SourceOf, class DestinationOf>
inline void fold_elements(HostGroup&, const Fold& how, int sources, SourceOf source,
                          int destinations, DestinationOf destination, std::size_t count) {
  const std::byte* from[max_fan];
  std::byte* to[max_fan];
  for (int i = 0; i < sources; ++i) from[i] = source(i);
  for (int i = 0; i < destinations; ++i) to[i] = destination(i);
  fold_on_host(how, {from, sources, to, destinations, count * size_of(how.type)});
}

}  // namespace treering
