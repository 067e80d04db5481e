#pragma once

// The scheduler: runs the threads of all grids, one at a time, and at each of their steps (a
// barrier, a raised flag, a poll, a shuffle) goes on with one that is drawn by a seeded generator.
// The same launches with the same seed give the same run.
//
//              start()                        all threads exited
//     grid ──► ready threads ◄─── poll, raise ──┐    ▲
//                   │ draw ─────► running ──────┼────┘
//                   └──────────── last one ◄────┴──► blocked at a barrier
//
// A quarter of the blocks is asleep for a while, then another: their threads are drawn less often,
// so that ranks run further ahead of one another than a fair draw would let them.
//
// Whoever calls run() lends its OS thread until there is something for it to do. This class knows
// nothing of queues and OS threads: that is the engine's.
//
// A GPU's malice (malice.hpp): blocks of a grid that was started begin when there is a slot for
// them, and perhaps late; stores of a thread may be torn by steps of others.

#include <atomic>
#include <cstdint>
#include <memory>

#include "kernels/exec/simt/grid.hpp"
#include "kernels/exec/simt/malice.hpp"

namespace treering::simt {

class Scheduler {
 public:
  /// Threads that can live at the same time. ThreadSanitizer of g++ 12 dies of 8128.
  static constexpr int most_fibers = under_tsan ? 7000 : 16384;

  // ---- for the engine, from outside of all fibers

  void seed(std::uint64_t, const Malice&);
  const Malice& malice() const { return malice_; }
  /// A digest of all draws since seed().
  std::uint64_t trace() const { return trace_; }

  /// The grid's blocks begin as soon as they can. Needs room for their threads. Throws
  /// Error{out_of_memory}.
  void start(Grid&);
  bool has_room(int threads) const { return live_ + threads <= most_fibers; }
  /// There are slots for so many more blocks at once.
  TREERING_UNSEEN bool has_slots(int blocks) const {
    return malice_.slots == 0 || taken_ + blocks <= malice_.slots;
  }

  /// Runs threads until a grid finishes, `news` is set, all is quiet, or `steps` steps are done.
  /// Then, poll_again() makes all who poll try anew before it is quiet again.
  void run(const std::atomic<bool>& news, std::uint64_t steps);
  /// There is no thread that could do anything but poll in vain.
  bool quiet() const { return quiet_ == ready_; }
  void poll_again();
  /// Counts what threads did, other than polling in vain.
  std::uint64_t progress() const { return progress_; }

  /// A grid that has finished since the last call; null if none. Its order has been released.
  Grid* take_finished();
  /// Unwinds the threads of a grid that has not finished, and so finishes it.
  void drop(Grid&);

  // ---- for SimtGroup, inside of fibers

  /// Arrives at barrier `number` of the block; returns when `count` threads have. True if one of
  /// them voted so.
  bool arrive(Thread&, int number, int count, const std::source_location&, bool vote);
  /// A poll in vain.
  void poll(Thread&, Site, int peer, bool first);
  /// Lets others run.
  void yield(Thread&);
  /// This 16-byte store is to be torn.
  TREERING_UNSEEN bool tears() { return malice_.torn_stores && below(4) == 0; }
  TREERING_UNSEEN bool heads() { return below(2) == 0; }
  StaleMemory& memory() { return memory_; }
  /// The value that the thread `lane` of this thread's warp gives.
  std::uint64_t shuffle(Thread&, std::uint64_t value, int lane, const std::source_location&);

 private:
  static void live(Fiber&);
  void fill_pool(int threads);
  void admit();
  bool may_begin(const Block&) const;
  void begin(Block&);
  void make_ready(Thread&);
  void join(Thread&, Barrier&, int expected, const std::source_location&, bool anywhere);
  void open(Barrier&);
  void step(Thread&);
  void exit(Thread&);
  void end(Block&);
  void finish(Grid&);
  void hand_over(Thread&);
  bool must_return() const;
  Thread& draw();
  bool asleep(const Thread&) const;
  int below(int bound);
  void progressed();

  Fiber host_;  // who called run()
  const std::atomic<bool>* news_ = nullptr;
  std::uint64_t steps_left_ = 0;
  bool dropping_ = false;

  Malice malice_;
  StaleMemory memory_;
  Block* late_ = nullptr;  // blocks that have not begun, in order
  int taken_ = 0;          // slots that are occupied or kept

  std::uint64_t random_ = 1, trace_ = 0;
  std::uint32_t asleep_ = 0;

  std::unique_ptr<Thread*[]> ready_storage_ = std::make_unique<Thread*[]>(most_fibers);
  Thread** ready_list_ = ready_storage_.get();
  int ready_ = 0;
  int quiet_ = 0;  // of those: who has polled often enough in vain since epoch_ began
  std::uint64_t epoch_ = 0, progress_ = 0;

  int live_ = 0;
  Grid* finished_ = nullptr;
  Thread *pool_ = nullptr, *pool_end_ = nullptr;  // fibers that are nobody now
  int pooled_ = 0;
};

/// The process's one scheduler.
Scheduler& scheduler();

}  // namespace treering::simt
