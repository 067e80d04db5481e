#pragma once

#include "collectives/access.hpp"
#include "kernels/exec/host/arena.hpp"
#include "kernels/wire/board.hpp"

namespace treering::test {

/// Whether a rank of this process has begun its call number `sequence`, from 1, and no more than board_entries - 1 since.
inline bool has_begun(Communicator& comm, std::uint64_t sequence) {
  const auto& board = *reinterpret_cast<const Board*>(process_arena().base() +
                                                      membership(comm).facts().board_offset);
  Descriptor call{};
  return read(board, sequence, call) != 0;
}

}  // namespace treering::test
