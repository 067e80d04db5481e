#pragma once

// A kernel that runs: a grid of blocks of threads, as on a GPU. Plain data, written by the
// scheduler only.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>

#include "kernels/exec/group.hpp"
#include "kernels/exec/simt/fiber.hpp"
#include "kernels/exec/simt/memory.hpp"

namespace treering {
class SimtGroup;
}

namespace treering::simt {

struct Block;
struct Grid;
struct Thread;

/// What every thread of a grid runs. Must not throw.
using Kernel = std::function<void(SimtGroup&)>;

inline constexpr int warp_size = 32;
inline constexpr int named_barriers = 16;  ///< number 0 is sync()
inline constexpr int most_threads = 1024;  ///< in a block

/// Where threads of a block meet.
struct Barrier {
  int expected;  ///< threads, as the first one to arrive said
  int arrived;
  bool mixed;  ///< another came from elsewhere, or expects another number: never opens
  bool vote;
  unsigned generation;
  std::source_location place;
  Thread* waiting;
  // By parity of the generation, as the fast may be one ahead of the slow.
  bool outcome[2];  ///< of the vote
  Tag tags[2];
};

/// 32 threads that can exchange values.
struct Warp {
  Barrier barrier;
  std::uint64_t values[2][warp_size];
};

enum class State : std::uint8_t {
  ready,    ///< runs or could run
  polling,  ///< could run, but does nothing but wait for a flag
  blocked,  ///< stands at a barrier
};

/// One CUDA thread: a fiber, which serves many one after the other.
struct alignas(64) Thread : Fiber {
  using Fiber::Fiber;

  Block* block = nullptr;
  Thread* next = nullptr;      ///< in the one list that it is in
  Barrier* barrier = nullptr;  ///< at which it is blocked, as called at:
  std::source_location place{};
  int rank = 0;
  State state = State::ready;
  bool dropped = false;  ///< must unwind: its kernel can never complete
  // The flag that it polls.
  Site site = Site::post;
  int peer = 0;
  int barriers = 0;  ///< that it has called, where mutants ask
  // How often it has polled in vain since anything last happened.
  int polls = 0;
  std::uint64_t polled_in = 0;
};

struct Block {
  Grid* grid;
  int index;
  int live;           ///< threads that have not exited
  int blocked;        ///< of those: threads that stand at a barrier
  std::uint32_t lot;  ///< decides when it sleeps
  Thread** threads;   ///< by rank; null once exited
  Warp* warps;
  Block* next;  ///< in the list of those that have not begun
  bool begun;
  Knowledge knowledge;
  Barrier barriers[named_barriers];
  alignas(64) std::byte shared[shared_bytes];
};

struct Grid {
  int blocks, threads;   ///< threads of a block
  int rank;              ///< of the communicator, for reports; -1: none
  std::uint64_t number;  ///< counts the grids
  int live;              ///< blocks that have not ended
  int late;              ///< of those: blocks that have not begun
  bool command;          ///< a copy, a record or a wait: its block needs no slot
  bool together;         ///< slots are kept for all its blocks, from when it is issued
  const char* held;      ///< why it has not been issued; null: it has, or it is not its turn
  Tag* order;  ///< grids with the same one run one after the other, and see each other's memory

  // Made by whoever launches, freed by the last thread to exit, since ThreadSanitizer takes making
  // and freeing for writes: the scheduler, which knows when but orders nothing, must do neither.
  const Kernel* kernel;
  Block* block;
  Tag begin, end;

  Grid* next;  ///< in the list of finished ones
};

/// Gives the grid its kernel and its blocks. Called by who launches.
void furnish(Grid&, Kernel);
/// The opposite, by the last thread that exits.
void clear(const Kernel*, Block*);

/// Thrown inside the threads of a kernel that can never complete, so that their stacks are unwound.
struct Dropped {};

}  // namespace treering::simt
