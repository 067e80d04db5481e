#pragma once

#include <cstdint>

#include "treering/types.hpp"

namespace treering {

/// The scale of a premul_sum as folds take it (Fold::scale): its bits in the type's accumulator, in
/// the lower ones of the word. f32 for f32 and narrower floats, to which it is rounded (it may become
/// infinite); integers: truncated toward zero. Throws Error{invalid_argument} if the type is an
/// integer and cannot hold that, or a boolean, which has no scales.
std::uint64_t scale_bits(DataType, double scale);

}  // namespace treering
