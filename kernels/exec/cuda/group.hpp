#pragma once

// The `cuda` execution's group: the threads of one CUDA block. The only place where kernels meet
// CUDA's built-in variables and barriers. For nvcc only.

#include <cstddef>
#include <cstdint>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/cuda/launch.hpp"
#include "kernels/exec/group.hpp"

namespace treering {

class CudaGroup {
 public:
  /// `block`, `blocks`: this rank's, not the grid's: a grid may hold several ranks. `shared`:
  /// shared_bytes of shared memory.
  TREERING_DEVICE CudaGroup(int block, int blocks, std::byte* shared)
      : block_(block), blocks_(blocks), shared_(shared) {}

  TREERING_DEVICE int rank() const { return static_cast<int>(threadIdx.x); }
  TREERING_DEVICE static constexpr int size() { return block_threads; }
  TREERING_DEVICE bool is_leader() const { return threadIdx.x == 0; }
  TREERING_DEVICE int block() const { return block_; }
  TREERING_DEVICE int blocks() const { return blocks_; }

  TREERING_DEVICE void sync() const { __syncthreads(); }
  TREERING_DEVICE bool any(bool p) const { return __syncthreads_or(p) != 0; }
  TREERING_DEVICE void settle_stores() const {
  }  // a barrier and the leader's release order every store

  TREERING_DEVICE void enter(Turnstile&) const {}  // launches of a rank run one after the other
  TREERING_DEVICE bool try_enter(Turnstile&) const { return true; }
  TREERING_DEVICE void leave(Turnstile&) const {}

  template <class T>
  TREERING_DEVICE T& shared() const {
    static_assert(sizeof(T) <= shared_bytes && alignof(T) <= shared_alignment);
    return *reinterpret_cast<T*>(shared_);
  }

  TREERING_DEVICE void raise(Site, std::uint64_t& flag, std::uint64_t value) const {
    store_release(flag, value);
  }

  TREERING_DEVICE void acquire(Site, const std::uint64_t& flag) const { load_acquire(flag); }

  TREERING_DEVICE void put(std::uint64_t& word, std::uint64_t value) const {
    store_relaxed(word, value);
  }

  /// Polls at full speed for the first microseconds, then naps, a little longer each time. A look
  /// costs about 2 µs (the abort word lies in host memory), so it comes once in some milliseconds.
  TREERING_DEVICE bool pause(Site, int /*peer*/, std::uint32_t turn) const {
    constexpr std::uint32_t spins = 256, longest_nap_ns = 512, look_every = 1 << 12;
    if (turn >= spins) __nanosleep(turn - spins < longest_nap_ns ? turn - spins : longest_nap_ns);
    return turn % look_every == look_every - 1;
  }

 private:
  int block_, blocks_;
  std::byte* shared_;
};

}  // namespace treering
