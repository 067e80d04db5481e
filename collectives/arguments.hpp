#pragma once

// What a caller may pass: everything is checked before anything is sent, so that a refused call
// costs nothing.

#include <cstddef>

#include "kernels/wire/board.hpp"
#include "plan/chunks.hpp"
#include "treering/treering.hpp"

namespace treering {

/// One call's buffers and their sizes.
struct Arguments {
  Collective collective;
  const void* input;
  void* output;
  std::size_t count;  ///< of uneven parts that all ranks know: all of them together
  DataType type;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  Parts input_parts = {}, output_parts = {};      ///< where the collective has such
  std::size_t input_bytes = 0, output_bytes = 0;  ///< filled in by check_arguments()
};

/// Fills in the sizes, for a communicator of `size` ranks; a buffer that this rank does not have in the call (of a
/// rank that is not the root) becomes null. Throws Error{invalid_argument} naming the argument, its value, the rank
/// and what would be right: unknown type or operator, an operator that the type does not have, no such root, null with a count above zero, a buffer not
/// aligned to its element, a size that no memory has, parts that are not one for each rank or overlap, buffers that
/// overlap and are not in place.
void check_arguments(Arguments&, int rank, int size);

/// The parts as kernels get them: writes one Chunk for each rank.
void write_chunks(const Parts&, Chunk* chunks);

/// Elements of all parts together; wraps around, where check_arguments() finds more than any memory holds.
std::size_t sum_of(const Parts&);

/// Differs, but for a chance of 2⁻³², for different counts.
std::uint32_t hash_of(const Parts&);

}  // namespace treering
