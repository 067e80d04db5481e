#pragma once

// What a caller may pass: everything is checked before anything is sent, so that a refused call
// costs nothing.

#include <cstddef>

#include "kernels/wire/board.hpp"

namespace treering {

/// One call's buffers and their sizes.
struct Arguments {
  Collective collective;
  DataType type;
  ReduceOp op;
  const void* input;
  void* output;
  std::size_t count;
  std::size_t input_bytes, output_bytes;
};

/// Fills in the sizes, for a communicator of `size` ranks. Throws Error{invalid_argument} naming
/// the argument, its value, the rank and what would be right: unknown type or operator, an
/// operator that the type does not have, null with a
/// count above zero, a buffer not aligned to its element, a size that no memory has, buffers that
/// overlap and are not in place.
Arguments check_arguments(Collective collective, const void* input, void* output, std::size_t count,
                          DataType type, ReduceOp op, int rank, int size);

/// Where the input of an in-place call lies, given its output.
const std::byte* in_place_input(const Arguments&, int rank);

}  // namespace treering
