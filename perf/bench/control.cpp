#include "perf/bench/control.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "treering/error.hpp"

namespace treering::perf {

/// A rank's own line. Results alternate between two places: who writes one again has seen a barrier
/// since the other ranks read it.
struct alignas(64) Control::Seat {
  std::atomic<std::uint64_t> round{0};
  std::uint64_t combined = 0;
  Share shares[2];
  struct alignas(64) Flag {
    std::atomic<std::uint64_t> value{0};
  };
  Flag flags[2];
};

struct Control::Memory {
  int ranks;
  std::byte note[512];
  alignas(64) std::atomic<int> stopped{0};
  alignas(64) std::atomic<int> arrived{0};
  alignas(64) std::atomic<std::uint64_t> opened{0};  // barriers completed
  // Seats follow.

  Seat* seats() { return reinterpret_cast<Seat*>(this + 1); }
  static std::size_t bytes_for(int ranks) {
    return sizeof(Memory) + static_cast<std::size_t>(ranks) * sizeof(Seat);
  }
};

namespace {

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorCode::system, fmt::format("The control memory of this run cannot be {}: {}.",
                                             what, std::strerror(errno)));
}

/// Waits in ever longer steps, so that ranks may outnumber cores.
class Patience {
 public:
  void wait() {
    ++turns_;
    if (turns_ < 1000) return;
    if (turns_ < 3000) {
      sched_yield();
      return;
    }
    const timespec nap{0, 200'000};
    nanosleep(&nap, nullptr);
  }

 private:
  int turns_ = 0;
};

}  // namespace

Control::Control(int ranks) : descriptor_(memfd_create("treering-perf", MFD_CLOEXEC)) {
  const std::size_t bytes = Memory::bytes_for(ranks);
  if (descriptor_ < 0) refuse("made");
  if (ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    close(descriptor_);
    refuse("sized");
  }
  map(bytes);
  new (memory_) Memory;
  memory_->ranks = ranks;
  std::uninitialized_default_construct_n(memory_->seats(), ranks);
}

Control Control::inherited(int descriptor) { return Control(Inherited{descriptor}); }

Control::Control(Inherited from) : descriptor_(from.descriptor) {
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) refuse("found");
  map(static_cast<std::size_t>(status.st_size));
}

void Control::map(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (at == MAP_FAILED) {
    close(descriptor_);
    refuse("mapped");
  }
  bytes_ = bytes;
  memory_ = static_cast<Memory*>(at);
}

Control::~Control() {
  munmap(memory_, bytes_);
  close(descriptor_);
}

int Control::ranks() const noexcept { return memory_->ranks; }

std::span<std::byte, 512> Control::note() const noexcept { return memory_->note; }

std::atomic<std::uint64_t>& Control::flag(int rank, bool second) noexcept {
  return memory_->seats()[rank].flags[second].value;
}

void Control::barrier() {
  const std::uint64_t before = memory_->opened.load(std::memory_order_acquire);
  if (memory_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == memory_->ranks) {
    memory_->arrived.store(0, std::memory_order_relaxed);
    memory_->opened.store(before + 1, std::memory_order_release);
  }
  for (Patience patience; memory_->opened.load(std::memory_order_acquire) == before;
       patience.wait())
    if (memory_->stopped.load(std::memory_order_relaxed)) throw Stopped();
}

Share Control::combine(int rank, const Share& mine) {
  Seat& seat = memory_->seats()[rank];
  const std::uint64_t place = seat.combined++ % 2;
  seat.shares[place] = mine;
  barrier();
  Share all = mine;
  for (int r = 0; r < memory_->ranks; ++r) {
    if (r == rank) continue;
    const Share& other = memory_->seats()[r].shares[place];
    all.seconds = std::max(all.seconds, other.seconds);
    all.wrong += other.wrong;
    all.out_of_bounds += other.out_of_bounds;
    all.direct = all.direct && other.direct;
  }
  return all;
}

void Control::stop() noexcept { memory_->stopped.store(1, std::memory_order_relaxed); }

void Control::come(int rank, std::uint64_t round) noexcept {
  memory_->seats()[rank].round.store(round, std::memory_order_relaxed);
}

int Control::missing(std::uint64_t round) const noexcept {
  int missing = 0;
  for (int r = 0; r < memory_->ranks; ++r)
    missing += memory_->seats()[r].round.load(std::memory_order_relaxed) < round;
  return missing;
}

}  // namespace treering::perf
