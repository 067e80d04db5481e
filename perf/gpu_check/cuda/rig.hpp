#pragma once

// The GPU; rig.hpp says what each thing is for. For nvcc only. The only place of the gpu check with
// PTX in it.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/cuda/check.hpp"
#include "kernels/exec/qualifiers.hpp"
#include "perf/gpu_check/probe.hpp"
#include "perf/gpu_check/rig_types.hpp"

namespace treering::gpu_check::on_gpu {

inline constexpr double patience_seconds = 0.2;
inline constexpr std::uint64_t effort = 100;
inline constexpr int warp = 32, line_threads = 8;

struct At {
  int block, blocks, thread, threads;
  TREERING_DEVICE bool leader() const { return thread == 0; }
  TREERING_DEVICE void sync() const { __syncthreads(); }
};

TREERING_DEVICE std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
TREERING_DEVICE void rest() { __nanosleep(100); }
TREERING_DEVICE void poll_again() {}

template <Raise how>
TREERING_DEVICE void raise(std::uint64_t& word, std::uint64_t value) {
  if constexpr (how == Raise::release) {
    store_release(word, value);
  } else {
    cuda::atomic_thread_fence(cuda::memory_order_acq_rel, cuda::thread_scope_system);
    store_relaxed(word, value);
  }
}
TREERING_DEVICE std::uint64_t poll_acquire(const std::uint64_t& word) { return load_acquire(word); }
/// On purpose what Treering never does: a load of the read-only cache.
TREERING_DEVICE std::uint64_t load_cached(const std::uint64_t* word) {
  return __ldg(reinterpret_cast<const unsigned long long*>(word));
}
TREERING_DEVICE void fence_alias() { asm volatile("fence.proxy.alias;" ::: "memory"); }

TREERING_DEVICE void store_pair(void* to, std::uint64_t low, std::uint64_t high) {
  asm volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(low), "l"(high)
               : "memory");
}
TREERING_DEVICE Pack load_pair(const void* from) {
  Pack value;
  asm volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
               : "=l"(value.low), "=l"(value.high)
               : "l"(from)
               : "memory");
  return value;
}
TREERING_DEVICE void store_elements(Pack* to, Pack value) { store_pair(to, value.low, value.high); }
TREERING_DEVICE Pack load_elements(const Pack* from) { return load_pair(from); }

/// For all threads of a warp, which call it together.
TREERING_DEVICE bool warp_any(bool p) { return __any_sync(0xffffffff, p); }

// Eight neighbouring threads of a converged warp store or load a line of 128 bytes, by one
// instruction; the flag is its last word.
TREERING_DEVICE void store_line(const At& at, std::uint64_t* line, std::uint64_t base,
                                std::uint64_t flag) {
  const unsigned int part = static_cast<unsigned int>(at.thread) % 8;
  __syncwarp();
  store_pair(line + 2 * part, base + 2 * part, part == 7 ? flag : base + 2 * part + 1);
}
/// All lines of the warp, or false. As in NCCL the data is loaded again after the vote: the first
/// load may have been half old.
TREERING_DEVICE bool load_line(const At& at, const std::uint64_t* line, std::uint64_t base,
                               std::uint64_t flag, std::uint64_t& torn) {
  const unsigned int part = static_cast<unsigned int>(at.thread) % 8;
  __syncwarp();
  Pack value = load_pair(line + 2 * part);
  if (warp_any(part == 7 && value.high != flag)) return false;
  value = load_pair(line + 2 * part);
  torn += value.low != base + 2 * part;
  torn += value.high != (part == 7 ? flag : base + 2 * part + 1);
  __syncwarp();  // all have read before one gives the line back
  return true;
}

template <class Task>
__global__ void __launch_bounds__(1024, 1) run_task(const __grid_constant__ Task task) {
  task(At{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x), static_cast<int>(threadIdx.x),
          static_cast<int>(blockDim.x)});
}

class Lane {
 public:
  explicit Lane(int device) : device_(device) {
    const OnDevice here(device);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  cudaStream_t stream() const { return stream_; }
  int device() const { return device_; }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

/// While it lives, what is done on the streams is recorded, as one graph that the first one leads.
class Capture {
 public:
  explicit Capture(std::vector<cudaStream_t> streams);
  cudaGraphExec_t end();

 private:
  std::vector<cudaStream_t> streams_;
};

class Graph {
 public:
  explicit Graph(cudaGraphExec_t graph) : graph_(graph) {}
  void replay(Lane& lane) const {
    check(cudaGraphLaunch(graph_, lane.stream()), "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t graph_;
};

class Rig {
 public:
  explicit Rig(int device = 0);

  void describe(Findings&) const;
  int attribute(cudaDeviceAttr) const;
  bool under_mps() const { return attribute(cudaDevAttrMpsEnabled) != 0; }
  bool has_domains() const { return attribute(cudaDevAttrMemSyncDomainCount) > 1; }
  std::size_t cache_bytes() const {
    return static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize));
  }
  std::size_t big_bytes() const { return std::size_t{1} << 30; }

  std::uint64_t* device_words(std::size_t count) {
    return reinterpret_cast<std::uint64_t*>(device_bytes(count * sizeof(std::uint64_t)));
  }
  std::uint64_t* host_words(std::size_t count) {
    return reinterpret_cast<std::uint64_t*>(pinned_bytes(count * sizeof(std::uint64_t)));
  }
  std::byte* device_bytes(std::size_t bytes);
  std::byte* pinned_bytes(std::size_t bytes);
  std::byte* pageable_bytes(std::size_t bytes);
  std::pair<std::uint64_t*, std::uint64_t*> two_addresses(std::size_t count);
  std::uint64_t* share(Sharing, std::size_t count, Shared&);
  std::uint64_t* open(Sharing, const Shared&);
  bool reach(const Rig&);

  Lane lane() { return Lane(device_); }
  template <class Task>
  void load() const {
    const OnDevice here(device_);
    cudaFuncAttributes needs{};
    check(cudaFuncGetAttributes(&needs, &run_task<Task>), "cudaFuncGetAttributes");
  }
  template <class Task>
  void launch(Lane& lane, const Shape& shape, const Task& task) {
    cudaLaunchAttribute attributes[2];
    unsigned int count = 0;
    if (shape.cooperative) {
      attributes[count].id = cudaLaunchAttributeCooperative;
      attributes[count++].val.cooperative = 1;
    }
    if (shape.remote_domain) {
      attributes[count].id = cudaLaunchAttributeMemSyncDomain;
      attributes[count++].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned int>(shape.blocks));
    config.blockDim = dim3(static_cast<unsigned int>(shape.threads));
    config.stream = lane.stream();
    config.attrs = attributes;
    config.numAttrs = count;
    Task copy = task;
    void* arguments[] = {&copy};
    const OnDevice here(lane.device());
    check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&run_task<Task>), arguments),
          "cudaLaunchKernelExC");
  }
  void copy(Lane&, void* to, const void* from, std::size_t bytes);
  bool wait(Lane&, double seconds);
  template <class Task>
  int resident(int threads) const {
    const OnDevice here(device_);
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &run_task<Task>, threads, 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks * attribute(cudaDevAttrMultiProcessorCount);
  }
  Graph capture(std::span<Lane> lanes, const std::function<void()>& calls);

 private:
  int device_;
};

struct Action {
  std::string name;
  std::function<std::function<void()>(Rig&)> prepare;
  std::vector<std::string> environment = {};
};
std::vector<Action> actions();

/// A launch of a kernel that is a module of its own, which nothing else uses (late.cu).
void launch_late(cudaStream_t);

}  // namespace treering::gpu_check::on_gpu
