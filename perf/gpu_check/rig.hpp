#pragma once

// What the probes know of the machine. Their source is compiled twice: by nvcc for the GPU, and by
// the host compiler for the host in its place, where a kernel's block is a thread, a lane is a
// chain of them, and device memory is memory. So all of a probe's logic runs in the tests.
//
// A kernel is a Task: plain data with operator()(At) marked TREERING_DEVICE, called by every thread.
//
//   At          block, blocks, thread, threads; leader(); sync(): the block's barrier
//   nanoseconds()                        a clock that all blocks share
//   rest(), poll_again()                 between two polls: a nap, or next to nothing
//   raise(how, word, value)              a flag's store, in one of several ways
//   poll_acquire(word)                   an acquire at every look
//   load_cached(word)                    a load that the compiler may make non-coherent
//   fence_alias()                        between two addresses of the same memory
//   store_elements, load_elements        two 64-bit words that each hold a flag and a payload
//   store_line, load_line, warp_any      128-byte lines with one flag, by a whole warp
//
// The Rig is the host's side: memory, lanes, launches, bounded waits. It frees nothing: its process
// ends with the probe, and freeing would wait for a kernel that is stuck.

// What stands in headers goes into the namespace TREERING_RIG, or both machines' would be one.

#ifdef __CUDACC__
#include "perf/gpu_check/cuda/rig.hpp"
#define TREERING_RIG on_gpu
namespace treering::gpu_check {
using namespace on_gpu;
using Place = OnGpu;
}  // namespace treering::gpu_check
#else
#include "perf/gpu_check/host/rig.hpp"
#define TREERING_RIG on_host
namespace treering::gpu_check {
using namespace on_host;
using Place = OnHost;
}  // namespace treering::gpu_check
#endif
