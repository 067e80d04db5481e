#pragma once

// What the folds need of the processor beyond the compiler's vectors. Where it is not an x86-64
// there is one instruction set, and streaming stores are ordinary ones.

#include <cstddef>
#include <cstring>

#include "kernels/ops/operators.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// The sanitizers do not see what intrinsics load and store: use none then.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define TREERING_SANITIZED
#endif

namespace treering {

inline constexpr std::size_t cache_line = 64;

#ifdef __x86_64__
/// Every processor with AVX2 converts f16 (F16C), too.
TREERING_ARITHMETIC bool has_avx2() noexcept { return __builtin_cpu_supports("avx2"); }
TREERING_ARITHMETIC bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

#if defined(__x86_64__) && !defined(TREERING_SANITIZED)

/// Stores a line past the caches; `to` is aligned to it. Later stores do not wait for it, not even
/// those that release: finish_streaming() does.
TREERING_ARITHMETIC void stream_line(std::byte* to, const std::byte* from) noexcept {
  for (std::size_t i = 0; i < cache_line; i += sizeof(__m128i))
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
}
TREERING_ARITHMETIC void finish_streaming() noexcept { _mm_sfence(); }

#else

TREERING_ARITHMETIC void stream_line(std::byte* to, const std::byte* from) noexcept {
  std::memcpy(to, from, cache_line);
}
TREERING_ARITHMETIC void finish_streaming() noexcept {}

#endif

}  // namespace treering
