#pragma once

// What the ranks of one run share besides the collectives that they measure: a barrier, a way to
// add up results, flags, a note. It lies in a memfd, so that ranks may be processes, and it
// vanishes with them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace treering::perf {

/// Another rank has failed, so there is no point in going on.
struct Stopped : std::runtime_error {
  Stopped() : std::runtime_error("stopped, because another rank failed") {}
};

/// One rank's part of a result.
struct Share {
  double seconds = 0;
  std::uint64_t wrong = 0;
  std::uint64_t out_of_bounds = 0;
  bool direct = true;
};

class Control {
 public:
  /// New control memory. Throws Error{system}.
  explicit Control(int ranks);
  /// The control memory behind a descriptor that was inherited.
  static Control inherited(int descriptor);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  int descriptor() const noexcept { return descriptor_; }
  int ranks() const noexcept;
  /// Room for what one rank has to tell the others; who reads it has met the writer in a barrier.
  std::span<std::byte, 512> note() const noexcept;

  /// Returns when all ranks are here; those that come early spin, then yield, then nap. Throws
  /// Stopped.
  void barrier();
  /// A barrier that gives every rank the slowest time, the sums, and whether all were direct.
  Share combine(int rank, const Share& mine);
  /// Ends all barriers, now and later. Callable from any thread.
  void stop() noexcept;

  /// A pair of flags for two ranks, the second of which is `rank`; each on a line of its own.
  std::atomic<std::uint64_t>& flag(int rank, bool second) noexcept;

  /// How many rounds a rank has come to, for the check of barriers.
  void come(int rank, std::uint64_t round) noexcept;
  /// Ranks that have not come to that round.
  int missing(std::uint64_t round) const noexcept;

 private:
  struct Memory;
  struct Seat;
  struct Inherited {
    int descriptor;
  };
  explicit Control(Inherited);
  void map(std::size_t bytes);

  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  Memory* memory_ = nullptr;
};

}  // namespace treering::perf
