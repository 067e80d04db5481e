#pragma once

// The `simt` execution's group: each thread of a block is a fiber, so that the kernel's barriers
// are real and its threads interleave as the seed says. Every member that is not a plain number is
// a place where other threads may run.
//
// Barriers know from where they are called. Threads of a block that meet at different calls, or of
// which some have exited, wait for ever, and are reported (engine.hpp).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"
#include "kernels/exec/simt/mutants.hpp"
#include "kernels/exec/simt/scheduler.hpp"
#include "kernels/ops/pack.hpp"

namespace treering {

class SimtGroup {
 public:
  using Place = std::source_location;

  SimtGroup(simt::Thread& thread, int rank, int size, int block, int blocks, std::byte* shared)
      : thread_(thread),
        rank_(rank),
        size_(size),
        block_(block),
        blocks_(blocks),
        shared_(shared) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_leader() const { return rank_ == 0; }
  int block() const { return block_; }
  int blocks() const { return blocks_; }

  void sync(const Place& place = Place::current()) const { meet(0, size_, false, place); }
  bool any(bool p, const Place& place = Place::current()) const { return meet(0, size_, p, place); }

  /// Named barrier `number` (1 … 15), of any `count` threads of the block; CUDA's `bar.sync number,
  /// count`.
  void sync(int number, int count, const Place& place = Place::current()) const {
    meet(number, count, false, place);
  }

  /// The value of the thread `lane` of this warp, all of whose threads call it; CUDA's
  /// `__shfl_sync`. Orders no memory.
  template <class T>
  T shuffle(T value, int lane, const Place& place = Place::current()) const {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = scheduler_.shuffle(thread_, bits, lane, place);
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  void raise(Site site, std::uint64_t& flag, std::uint64_t value) const {
    const bool ordered = !simt::mutants::switches.weak[static_cast<int>(site)];
    if (stale()) scheduler_.memory().raise(knowledge(), flag, value, ordered);
    if (ordered)
      store_release(flag, value);
    else
      store_relaxed(flag, value);
    scheduler_.yield(thread_);
  }

  void acquire(Site site, const std::uint64_t& flag) const {
    if (simt::mutants::switches.no_acquire[static_cast<int>(site)]) return;
    const std::uint64_t value = load_acquire(flag);
    if (stale()) scheduler_.memory().acquire(knowledge(), flag, value);
  }

  /// Others may run between the lines of a message.
  void put(std::uint64_t& word, std::uint64_t value) const {
    constexpr std::uintptr_t line = 64;
    constexpr int element = static_cast<int>(Site::element);
    if (simt::mutants::switches.weak[element]) {  // the flag overtakes the data
      store_relaxed(word, value >> 32 << 32 | (load_relaxed(word) & 0xffff'ffff));
      scheduler_.yield(thread_);
    }
    store_relaxed(word, value);
    if (reinterpret_cast<std::uintptr_t>(&word) % line == 0) scheduler_.yield(thread_);
  }

  bool pause(Site site, int peer, std::uint32_t turn) const {
    constexpr std::uint32_t look_every = 4;
    scheduler_.poll(thread_, site, peer, turn == 0);
    return turn % look_every == look_every - 1;
  }

  /// For load_pack() and store_pack(), below.
  template <class P>
  P load(const std::byte* address) const {
    P pack;
    std::memcpy(&pack, address, sizeof pack);
    if (stale())
      scheduler_.memory().load(knowledge(), address, reinterpret_cast<std::byte*>(&pack),
                               sizeof pack);
    return pack;
  }
  template <class P>
  void store(std::byte* address, const P& pack) const {
    const auto* bytes = reinterpret_cast<const std::byte*>(&pack);
    if constexpr (sizeof(P) == 2 * half_bytes)
      if (scheduler_.tears()) {
        const std::size_t first = scheduler_.heads() ? 0 : half_bytes;
        store_at_once<half_bytes>(address + first, bytes + first);
        scheduler_.yield(thread_);
        const std::size_t second = half_bytes - first;
        return store_at_once<half_bytes>(address + second, bytes + second);
      }
    store_at_once<sizeof(P)>(address, bytes);
  }

  void settle_stores() const {}  // there are no non-temporal ones

  void enter(Turnstile&) const {}  // launches of a rank run one after the other
  bool try_enter(Turnstile&) const { return true; }
  void leave(Turnstile&) const {}

  template <class T>
  T& shared() const {
    static_assert(sizeof(T) <= shared_bytes);
    return *reinterpret_cast<T*>(shared_);
  }

 private:
  static constexpr std::size_t half_bytes = 8;

  TREERING_UNSEEN bool stale() const { return scheduler_.malice().stale_loads; }
  TREERING_UNSEEN simt::Knowledge& knowledge() const { return thread_.block->knowledge; }

  template <std::size_t bytes>
  void store_at_once(std::byte* address, const std::byte* value) const {
    if (stale()) scheduler_.memory().store(knowledge(), address);
    std::memcpy(address, value, bytes);
  }

  bool meet(int number, int count, bool vote, const Place& place) const {
    if (simt::mutants::switches.barriers && simt::mutants::skips(place, thread_.barriers))
      return vote;
    return scheduler_.arrive(thread_, number, count, place, vote);
  }

  simt::Scheduler& scheduler_ = simt::scheduler();
  simt::Thread& thread_;
  int rank_, size_, block_, blocks_;
  std::byte* shared_;
};

/// Packs of the simulated GPU (kernels/ops/pack.hpp) are torn, and stale.
template <class P>
P load_pack(SimtGroup& group, const std::byte* address) {
  return group.load<P>(address);
}
template <class P>
void store_pack(SimtGroup& group, std::byte* address, const P& pack) {
  group.store(address, pack);
}

}  // namespace treering
