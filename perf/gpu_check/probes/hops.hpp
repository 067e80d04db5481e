#pragma once

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check::TREERING_RIG {

/// How a flag is polled: by relaxed loads and one acquire, or by acquires.
enum class Look { relaxed, acquire };

/// Two blocks, or two kernels, that wait for each other in turn:
///
///     side 0   raise ping 1 ─────► … wait for pong 1 ◄───── raise pong 1   side 1
template <Raise how, Look look>
struct PingPong {
  std::uint64_t *ping, *pong;
  std::uint64_t* nanos;  ///< host word: what it took, 0 if somebody waited in vain
  int side;              ///< of the first block; a second block is the other
  std::uint64_t rounds, patience_ns;

  TREERING_DEVICE void operator()(At at) const {
    if (!at.leader()) return;
    const int me = side + at.block;
    std::uint64_t &mine = me == 0 ? *ping : *pong, &theirs = me == 0 ? *pong : *ping;
    const std::uint64_t begin = nanoseconds();
    bool well = true;
    for (std::uint64_t round = 1; round <= rounds && well; ++round) {
      if (me == 0) raise<how>(mine, round);
      well = await(theirs, round, nanoseconds() + patience_ns);
      if (me == 1) raise<how>(mine, round);
    }
    if (me == side) store_release(*nanos, well ? nanoseconds() - begin : 0);
  }

  TREERING_DEVICE static bool await(const std::uint64_t& word, std::uint64_t value,
                                    std::uint64_t end) {
    if constexpr (look == Look::relaxed) {
      return wait_for(word, value, end);
    } else {
      for (; poll_acquire(word) < value; poll_again())
        if (nanoseconds() > end) return false;
      return true;
    }
  }
};

}  // namespace treering::gpu_check::TREERING_RIG
