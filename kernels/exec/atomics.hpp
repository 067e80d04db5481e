#pragma once

// All flags of Treering go through this header. A flag is an aligned 64-bit word with one writer, that
// only ever rises. The writer stores with release order, a reader loads with acquire order, both at
// system scope: what the writer stored before the flag is visible to whoever sees the flag.
//
// A wait polls with the relaxed load and then acquires once: on a GPU every acquire invalidates the
// L1 cache. There is no read-modify-write (PCIe peers may lack it), no volatile and no fence.

#include <cstdint>

#include "kernels/exec/qualifiers.hpp"

#ifdef __CUDACC__
#include <cuda/atomic>
#else
#include <atomic>
#endif

namespace treering {

#ifdef __CUDACC__

using FlagRef = cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system>;
inline constexpr auto order_relaxed = cuda::memory_order_relaxed;
inline constexpr auto order_acquire = cuda::memory_order_acquire;
inline constexpr auto order_release = cuda::memory_order_release;
#define TREERING_FLAG_FUNCTION __host__ __device__ __forceinline__

#else

using FlagRef = std::atomic_ref<std::uint64_t>;
inline constexpr auto order_relaxed = std::memory_order_relaxed;
inline constexpr auto order_acquire = std::memory_order_acquire;
inline constexpr auto order_release = std::memory_order_release;
#define TREERING_FLAG_FUNCTION inline

#endif

TREERING_FLAG_FUNCTION std::uint64_t load_relaxed(const std::uint64_t& flag) {
  return FlagRef(const_cast<std::uint64_t&>(flag)).load(order_relaxed);
}

TREERING_FLAG_FUNCTION std::uint64_t load_acquire(const std::uint64_t& flag) {
  return FlagRef(const_cast<std::uint64_t&>(flag)).load(order_acquire);
}

TREERING_FLAG_FUNCTION void store_relaxed(std::uint64_t& flag, std::uint64_t value) {
  FlagRef(flag).store(value, order_relaxed);
}

TREERING_FLAG_FUNCTION void store_release(std::uint64_t& flag, std::uint64_t value) {
  FlagRef(flag).store(value, order_release);
}

}  // namespace treering
