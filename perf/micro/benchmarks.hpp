#pragma once

namespace treering::micro {

/// Copies and reductions of a chunk, by type and operator.
void register_folds();
/// What two cores need to hear of each other, and to hand over a slot.
void register_flags();
/// What a call costs before and after its kernel: choice, launch, stream.
void register_calls();

}  // namespace treering::micro
