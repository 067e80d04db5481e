#pragma once

// The `host` execution's group: a block is one thread, so that the loops of kernels become plain
// loops that the compiler vectorises, and barriers cost nothing.

#include <immintrin.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"

namespace treering {

class HostGroup {
 public:
  HostGroup(int block, int blocks, std::uint32_t spins)
      : block_(block), blocks_(blocks), spins_(spins) {}

  static constexpr int rank() { return 0; }
  static constexpr int size() { return 1; }
  static constexpr bool is_leader() { return true; }
  int block() const { return block_; }
  int blocks() const { return blocks_; }

  void sync() const {}
  bool any(bool p) const { return p; }
  void settle_stores() const {}  // the streaming folds end with a fence of their own

  // In no order: where threads outnumber cores, the one whose turn it were would seldom be running.
  void enter(Turnstile& t) const {
    for (std::uint32_t turn = 0; !try_enter(t); ++turn) pause(Site::mail, 0, turn);
  }
  bool try_enter(Turnstile& t) const {
    std::uint64_t free = 0;
    return load_relaxed(t.held) == 0 &&
           std::atomic_ref(t.held).compare_exchange_strong(free, 1, std::memory_order_acquire);
  }
  void leave(Turnstile& t) const { store_release(t.held, 0); }

  template <class T>
  T& shared() {
    static_assert(sizeof(T) <= shared_bytes);
    return *reinterpret_cast<T*>(shared_);
  }

  void raise(Site, std::uint64_t& flag, std::uint64_t value) const { store_release(flag, value); }

  void acquire(Site, const std::uint64_t& flag) const { load_acquire(flag); }

  void put(std::uint64_t& word, std::uint64_t value) const { store_relaxed(word, value); }

  /// Spins, then yields, then naps for up to a millisecond: ranks may outnumber cores.
  bool pause(Site, int /*peer*/, std::uint32_t turn) const {
    constexpr std::uint32_t look_every = 256, yields = 256, shortest_nap_us = 50,
                            longest_nap_us = 1000;
    constexpr std::uint32_t eager = 64;
    if (turn < spins_) {
      if (turn >= eager) _mm_pause();
      return turn % look_every == look_every - 1;
    }
    const std::uint32_t yielded = turn - spins_;
    if (yielded < yields) {
      sched_yield();
      return yielded % 16 == 15;
    }
    const std::uint32_t naps = yielded - yields;
    const std::uint32_t nap_us = naps < longest_nap_us ? shortest_nap_us + naps : longest_nap_us;
    const timespec nap{0,
                       static_cast<long>(nap_us < longest_nap_us ? nap_us : longest_nap_us) * 1000};
    nanosleep(&nap, nullptr);
    return true;
  }

 private:
  int block_, blocks_;
  std::uint32_t spins_;
  alignas(64) std::byte shared_[shared_bytes];
};

}  // namespace treering
