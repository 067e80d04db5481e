#pragma once

// Waits of the probes' kernels: each has an end, so that a wrong answer is an answer and not a
// hang.

#include "perf/gpu_check/rig.hpp"

namespace treering::gpu_check::TREERING_RIG {

inline constexpr std::uint64_t second_ns = 1'000'000'000;

/// One flag has a line of its own: no two share one in the L2 cache.
inline constexpr std::size_t line_words = 16;

/// Polls until the word is at least `value`, then acquires. False at `end`.
TREERING_DEVICE bool wait_for(const std::uint64_t& word, std::uint64_t value, std::uint64_t end) {
  for (; load_relaxed(word) < value; poll_again())
    if (nanoseconds() > end) return false;
  load_acquire(word);
  return true;
}

/// Occupies a block until the host says stop, or for so long.
struct Spin {
  std::uint64_t *started, *stop, *ended;  ///< host words
  std::uint64_t nanos;

  TREERING_DEVICE void operator()(At at) const {
    if (!at.leader()) return;
    const std::uint64_t end = nanoseconds() + nanos;
    store_release(*started, 1);
    while (nanoseconds() < end && load_relaxed(*stop) == 0) rest();
    store_release(*ended, 1);
  }
};

/// A Spin, and what the host does with it.
class Spinner {
 public:
  Spinner(Rig& rig, Lane lane, double seconds) : rig_(rig), lane_(std::move(lane)) {
    std::uint64_t* const words = rig.host_words(3 * line_words);
    spin_ = {words, words + line_words, words + 2 * line_words,
             static_cast<std::uint64_t>(seconds * 1e9)};
    rig_.launch(lane_, {}, spin_);
  }

  /// A launched kernel need not start while no call is made, so this makes some.
  bool await_start(double seconds) {
    const std::uint64_t end = now() + static_cast<std::uint64_t>(seconds * 1e9);
    while (load_acquire(*spin_.started) == 0) {
      if (now() > end) return false;
      rig_.wait(lane_, 0);
    }
    return true;
  }
  bool ended() const { return load_acquire(*spin_.ended) != 0; }
  void stop() const { store_release(*spin_.stop, 1); }
  bool wait(double seconds) { return rig_.wait(lane_, seconds); }
  Lane& lane() { return lane_; }

  static std::uint64_t now() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }

 private:
  Rig& rig_;
  Lane lane_;
  Spin spin_{};
};

}  // namespace treering::gpu_check::TREERING_RIG
