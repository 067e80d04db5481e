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

  // A ticket lock: who waits to enter comes before who only tries.
  void enter(Turnstile& t) const {
    const std::uint64_t ticket = std::atomic_ref(t.drawn).fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t turn = 0; load_acquire(t.served) != ticket; ++turn)
      turn < spins_ ? _mm_pause() : static_cast<void>(sched_yield());
  }
  bool try_enter(Turnstile& t) const {
    std::uint64_t ticket = load_acquire(t.served);
    return std::atomic_ref(t.drawn).compare_exchange_strong(ticket, ticket + 1,
                                                            std::memory_order_relaxed);
  }
  void leave(Turnstile& t) const { store_release(t.served, load_relaxed(t.served) + 1); }

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
