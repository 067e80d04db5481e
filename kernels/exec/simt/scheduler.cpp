#include "kernels/exec/simt/scheduler.hpp"

#include <cassert>

#include "kernels/exec/simt/group.hpp"

namespace treering::simt {
namespace {

// Polls in vain after which a thread counts as idle, if nothing else happened meanwhile: enough for
// it to have looked twice at the abort word and the boards (SimtGroup::pause).
constexpr int enough_polls = 8;

TREERING_UNSEEN std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

TREERING_UNSEEN bool same_place(const std::source_location& a, const std::source_location& b) {
  if (a.line() != b.line() || a.column() != b.column()) return false;
  const char *x = a.file_name(), *y = b.file_name();
  if (x == y) return true;
  while (*x != '\0' && *x == *y) ++x, ++y;
  return *x == *y;
}

/// Seen by ThreadSanitizer, as is all that the kernel does.
void run_kernel(const Kernel& kernel, Thread& self, int rank, int size, int block, int blocks,
                std::byte* shared) {
  try {
    SimtGroup group(self, rank, size, block, blocks, shared);
    kernel(group);
  } catch (const Dropped&) {  // NOLINT(bugprone-empty-catch): unwinding was all it is for
  }
}

}  // namespace

Scheduler& scheduler() {
  static Scheduler& one = *new Scheduler;  // never destroyed, nor are its fibers
  return one;
}

// ---- from outside of all fibers

TREERING_UNSEEN void Scheduler::seed(std::uint64_t seed, const Malice& malice) {
  malice_ = malice;
  random_ = mix(seed + 0x9e3779b97f4a7c15) | 1;
  trace_ = asleep_ = 0;
}

TREERING_UNSEEN void Scheduler::start(Grid& grid) {
  const int threads = grid.blocks * grid.threads;
  fill_pool(threads);  // may throw, and nothing has happened
  pooled_ -= threads;
  live_ += threads;
  grid.live = grid.late = grid.blocks;
  if (grid.together) taken_ += grid.blocks;
  Block** last = &late_;
  while (*last != nullptr) last = &(*last)->next;
  for (int b = 0; b < grid.blocks; ++b) {
    Block& block = grid.block[b];
    block.live = grid.threads;
    block.lot = static_cast<std::uint32_t>(mix(grid.number * 64 + b + 1));
    *last = &block;
    last = &block.next;
  }
  progressed();
}

/// Lets blocks begin for which there is a slot: all, or if they are to be late one, now and then.
TREERING_UNSEEN void Scheduler::admit() {
  constexpr int steps_late = 64;  // on average
  int can = 0;
  for (const Block* block = late_; block != nullptr; block = block->next) can += may_begin(*block);
  if (can == 0) return;
  if (malice_.late_blocks && ready_ > 0 && below(steps_late) != 0) {
    if (quiet()) poll_again();  // in vain until now, but a block will begin
    return;
  }
  if (malice_.late_blocks) can = 1 + below(can);
  for (Block** link = &late_; *link != nullptr;) {
    Block& block = **link;
    if (!may_begin(block) || (malice_.late_blocks && --can != 0)) {
      link = &block.next;
      continue;
    }
    *link = block.next;
    begin(block);
  }
}

TREERING_UNSEEN bool Scheduler::may_begin(const Block& block) const {
  return block.grid->command || block.grid->together || has_slots(1);
}

TREERING_UNSEEN void Scheduler::begin(Block& block) {
  Grid& grid = *block.grid;
  --grid.late;
  if (!grid.command && !grid.together) ++taken_;
  block.begun = true;
  memory_.begin(block.knowledge);
  for (int rank = 0; rank < grid.threads; ++rank) {
    Thread& thread = *pool_;
    pool_ = thread.next;
    thread.block = &block;
    thread.rank = rank;
    thread.dropped = false;
    thread.barriers = 0;
    block.threads[rank] = &thread;
    make_ready(thread);
  }
  progressed();
}

TREERING_UNSEEN void Scheduler::fill_pool(int threads) {
  for (; pooled_ < threads; ++pooled_) {
    Thread* const thread = new Thread(&live);
    if (pool_ == nullptr) pool_end_ = thread;
    thread->next = pool_;
    pool_ = thread;
  }
}

TREERING_UNSEEN void Scheduler::run(const std::atomic<bool>& news, std::uint64_t steps) {
  host_.adopt();
  news_ = &news;
  steps_left_ = steps;
  if (late_ != nullptr) admit();
  if (!must_return()) host_.switch_to(draw());
}

TREERING_UNSEEN void Scheduler::poll_again() {
  ++epoch_;
  quiet_ = 0;
}

TREERING_UNSEEN Grid* Scheduler::take_finished() {
  Grid* const grid = finished_;
  if (grid != nullptr) finished_ = grid->next;
  return grid;
}

TREERING_UNSEEN void Scheduler::drop(Grid& grid) {
  for (Block** link = &late_; *link != nullptr;) {
    Block& block = **link;
    if (block.grid != &grid) {
      link = &block.next;
      continue;
    }
    *link = block.next;
    begin(block);
  }
  int kept = 0;
  for (int i = 0; i < ready_; ++i)
    if (ready_list_[i]->block->grid != &grid) ready_list_[kept++] = ready_list_[i];
  ready_ = kept;

  int left = 0;
  for (int b = 0; b < grid.blocks; ++b) left += grid.block[b].live;
  // Each thread unwinds, exits, and comes back here. The last one frees the blocks.
  grid.begin.release();
  host_.adopt();
  dropping_ = true;
  for (Thread** thread = grid.block[0].threads; left > 0; ++thread) {
    if (*thread == nullptr) continue;
    (*thread)->dropped = true;
    --left;
    host_.switch_to(**thread);
  }
  dropping_ = false;
  poll_again();
}

// ---- inside of fibers

/// A fiber's life: one thread after the other.
TREERING_UNSEEN void Scheduler::live(Fiber& fiber) {
  Thread& self = static_cast<Thread&>(fiber);
  for (;;) {
    Block& block = *self.block;
    Grid& grid = *block.grid;
    grid.begin.acquire();
    grid.order->acquire();
    if (!self.dropped)
      run_kernel(*grid.kernel, self, self.rank, grid.threads, block.index, grid.blocks,
                 block.shared);
    scheduler().exit(self);
  }
}

/// Returns when the fiber has been given another thread to be.
TREERING_UNSEEN void Scheduler::exit(Thread& self) {
  progressed();
  Block& block = *self.block;
  block.grid->end.release();
  block.threads[self.rank] = nullptr;
  if (--block.live == 0) end(block);
  --live_;
  // Who has rested longest comes first: whoever goes on at once knows what its last thread has seen,
  // and so ThreadSanitizer finds nothing wrong in what it does next.
  self.next = nullptr;
  (pool_ == nullptr ? pool_ : pool_end_->next) = &self;
  pool_end_ = &self;
  ++pooled_;
  hand_over(self);
}

TREERING_UNSEEN void Scheduler::end(Block& block) {
  Grid& grid = *block.grid;
  memory_.end(block.knowledge);
  if (!grid.command) --taken_;
  if (--grid.live == 0) finish(grid);
}

TREERING_UNSEEN void Scheduler::finish(Grid& grid) {
  grid.end.acquire();
  grid.begin.acquire();  // a report may have read the blocks
  clear(grid.kernel, grid.block);
  grid.order->release();
  grid.next = finished_;
  finished_ = &grid;
}

TREERING_UNSEEN bool Scheduler::arrive(Thread& self, int number, int count,
                                       const std::source_location& place, bool vote) {
  if (self.dropped) return false;  // called by a destructor, while it unwinds
  assert(number >= 0 && number < named_barriers);
  Barrier& barrier = self.block->barriers[number];
  const unsigned parity = barrier.generation & 1;
  if (vote) barrier.vote = true;
  barrier.tags[parity].release();
  join(self, barrier, count, place, number != 0);
  barrier.tags[parity].acquire();
  return barrier.outcome[parity];
}

/// `anywhere`: the threads may come from different calls.
TREERING_UNSEEN void Scheduler::join(Thread& self, Barrier& barrier, int expected,
                                     const std::source_location& place, bool anywhere) {
  progressed();
  if (barrier.arrived++ == 0) {
    barrier.expected = expected;
    barrier.place = place;
  } else if (barrier.expected != expected || !(anywhere || same_place(barrier.place, place))) {
    barrier.mixed = true;
  }
  if (barrier.arrived == barrier.expected && !barrier.mixed) {
    open(barrier);
    make_ready(self);
  } else {
    self.state = State::blocked;
    self.barrier = &barrier;
    self.place = place;
    self.next = barrier.waiting;
    barrier.waiting = &self;
    ++self.block->blocked;
  }
  step(self);
}

TREERING_UNSEEN void Scheduler::open(Barrier& barrier) {
  barrier.outcome[barrier.generation++ & 1] = barrier.vote;
  barrier.vote = false;
  barrier.arrived = 0;
  for (Thread* thread = barrier.waiting; thread != nullptr; thread = thread->next) {
    --thread->block->blocked;
    make_ready(*thread);
  }
  barrier.waiting = nullptr;
}

TREERING_UNSEEN std::uint64_t Scheduler::shuffle(Thread& self, std::uint64_t value, int lane,
                                                 const std::source_location& place) {
  const int first = self.rank / warp_size * warp_size, left = self.block->grid->threads - first;
  const int lanes = left < warp_size ? left : warp_size;
  if (self.dropped) return value;
  Warp& warp = self.block->warps[first / warp_size];
  std::uint64_t* const values = warp.values[warp.barrier.generation & 1];
  values[self.rank - first] = value;
  join(self, warp.barrier, lanes, place, false);
  return values[static_cast<unsigned>(lane) % lanes];
}

TREERING_UNSEEN void Scheduler::poll(Thread& self, Site site, int peer, bool first) {
  if (self.dropped) return;
  if (first) progressed();
  if (self.polled_in != epoch_) {
    self.polled_in = epoch_;
    self.polls = 0;
  }
  if (++self.polls == enough_polls) ++quiet_;
  self.site = site;
  self.peer = peer;
  make_ready(self);
  self.state = State::polling;
  step(self);
}

TREERING_UNSEEN void Scheduler::yield(Thread& self) {
  if (self.dropped) return;
  progressed();
  make_ready(self);
  step(self);
}

TREERING_UNSEEN void Scheduler::make_ready(Thread& thread) {
  thread.state = State::ready;
  ready_list_[ready_++] = &thread;
}

TREERING_UNSEEN void Scheduler::progressed() {
  ++progress_;
  ++epoch_;
  quiet_ = 0;
}

/// The end of every step of a thread.
TREERING_UNSEEN void Scheduler::step(Thread& self) {
  hand_over(self);
  if (self.dropped) throw Dropped{};
}

TREERING_UNSEEN void Scheduler::hand_over(Thread& self) {
  --steps_left_;
  if (late_ != nullptr) admit();
  Fiber& next = must_return() ? host_ : draw();
  if (&next != &self) self.switch_to(next);
}

TREERING_UNSEEN bool Scheduler::must_return() const {
  return quiet() || finished_ != nullptr || steps_left_ == 0 || dropping_ ||
         news_->load(std::memory_order_relaxed);
}

TREERING_UNSEEN Thread& Scheduler::draw() {
  if ((random_ & 0xfff) < 4) asleep_ = static_cast<std::uint32_t>(random_ >> 12);
  int index = below(ready_);
  for (int again = 0; again < 2 && asleep(*ready_list_[index]); ++again) index = below(ready_);
  Thread& thread = *ready_list_[index];
  ready_list_[index] = ready_list_[--ready_];
  trace_ = (trace_ ^ (thread.block->lot + static_cast<std::uint32_t>(thread.rank))) * 0x100000001b3;
  return thread;
}

/// A quarter of the blocks, for some thousand steps.
TREERING_UNSEEN bool Scheduler::asleep(const Thread& thread) const {
  return ((thread.block->lot ^ asleep_) & 3) == 0;
}

TREERING_UNSEEN int Scheduler::below(int bound) {  // xorshift64*, S. Vigna 2014
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<int>((random_ * 0x2545f4914f6cdd1d >> 32) * bound >> 32);
}

}  // namespace treering::simt
