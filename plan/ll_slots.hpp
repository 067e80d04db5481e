#pragma once

// The slots of LL wires (kernels/wire/ll.hpp): elements of eight bytes, four of them data. A message's
// header takes the first.

#include <cstddef>
#include <cstdint>

#include "plan/wire_shape.hpp"
#include "treering/types.hpp"

namespace treering {

inline constexpr std::size_t ll_data_bytes = 4, ll_element_bytes = 8;
inline constexpr std::size_t ll_header_elements = 4;

/// Bytes of data that fit an LL slot: whole lines, half a slot's worth, but no more than LL is good for.
TREERING_PORTABLE constexpr std::size_t ll_capacity(WireShape shape) {
  constexpr std::size_t most = 16 * 1024;
  const std::size_t half = shape.slot_bytes / 2 / line_bytes * line_bytes;
  return half < line_bytes ? line_bytes : half < most ? half : most;
}

/// Bytes of an LL slot: whole lines.
TREERING_PORTABLE constexpr std::size_t ll_slot_bytes(WireShape shape) {
  const std::size_t elements = ll_header_elements + ll_capacity(shape) / ll_data_bytes;
  return (elements * ll_element_bytes + line_bytes - 1) / line_bytes * line_bytes;
}

/// Elements with data that message number `step` stores: those of its `bytes`; or all of the slot's, in
/// one message of 2³⁰ for each slot. So no element keeps a flag until it comes round again.
TREERING_PORTABLE constexpr std::size_t ll_stored_elements(WireShape shape, std::uint64_t step,
                                                           std::size_t bytes) {
  constexpr std::uint64_t round = std::uint64_t{1} << 30;
  if (step % round < shape.slots) bytes = ll_capacity(shape);
  return (bytes + ll_data_bytes - 1) / ll_data_bytes;
}

}  // namespace treering
