#pragma once

/// Marks a function that runs inside kernels only: everything below a kernel's entry.
#ifdef __CUDACC__
#define TREERING_DEVICE __device__ __forceinline__
#else
#define TREERING_DEVICE inline
#endif

/// The same, for a large function that is to exist once and be called, however many places use it.
#ifdef __CUDACC__
#define TREERING_DEVICE_CALL __device__ __noinline__
#else
#define TREERING_DEVICE_CALL inline
#endif

/// Before a loop: unroll it whole, so that arrays stay in registers; or leave it as it is.
#ifdef __CUDACC__
#define TREERING_UNROLL _Pragma("unroll")
#define TREERING_ROLLED _Pragma("unroll 1")
#else
#define TREERING_UNROLL
#define TREERING_ROLLED
#endif
