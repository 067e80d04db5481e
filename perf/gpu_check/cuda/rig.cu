#include "perf/gpu_check/cuda/rig.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/exec/cuda/device.hpp"
#include "kernels/exec/cuda/driver.hpp"
#include "perf/gpu_check/library.hpp"

namespace treering::gpu_check {

int machines(OnGpu) {
  int devices = 0;
  if (!cuda_available()) return 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  return devices;
}

void use_gpu(int number) { check(cudaSetDevice(number), "cudaSetDevice"); }

namespace on_gpu {
namespace {

void check_driver(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::system,
                std::string("CUDA refused ") + call + ": error " + std::to_string(result));
}

/// Memory that is mapped by hand: whole granules, which can be mapped twice, or by two processes.
class Virtual {
 public:
  explicit Virtual(int device) : device_(device) {
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties_.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  }

  std::size_t whole(std::size_t bytes) const {
    std::size_t granule = 0;
    check_driver(granularity_(&granule, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                 "cuMemGetAllocationGranularity");
    return (bytes + granule - 1) / granule * granule;
  }
  CUmemGenericAllocationHandle create(std::size_t bytes) const {
    CUmemGenericAllocationHandle handle = 0;
    check_driver(create_(&handle, whole(bytes), &properties_, 0), "cuMemCreate");
    return handle;
  }
  CUdeviceptr map(CUmemGenericAllocationHandle handle, std::size_t bytes) const {
    CUdeviceptr at = 0;
    check_driver(reserve_(&at, whole(bytes), 0, 0, 0), "cuMemAddressReserve");
    check_driver(map_(at, whole(bytes), 0, handle, 0), "cuMemMap");
    return at;
  }
  void allow(CUdeviceptr at, std::size_t bytes) const {
    const CUmemAccessDesc access{{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_},
                                 CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check_driver(allow_(at, whole(bytes), &access, 1), "cuMemSetAccess");
  }
  std::uint64_t* usable(CUmemGenericAllocationHandle handle, std::size_t bytes) const {
    const CUdeviceptr at = map(handle, bytes);
    allow(at, bytes);
    return reinterpret_cast<std::uint64_t*>(at);
  }
  int descriptor(CUmemGenericAllocationHandle handle) const {
    int descriptor = -1;
    check_driver(export_(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                 "cuMemExportToShareableHandle");
    return descriptor;
  }
  CUmemGenericAllocationHandle import(int descriptor) const {
    CUmemGenericAllocationHandle handle = 0;
    void* const as_pointer = reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor));
    check_driver(import_(&handle, as_pointer, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                 "cuMemImportFromShareableHandle");
    return handle;
  }

 private:
  int device_;
  CUmemAllocationProp properties_{};
  PFN_cuMemGetAllocationGranularity_v10020 granularity_ =
      driver_function<PFN_cuMemGetAllocationGranularity_v10020>("cuMemGetAllocationGranularity");
  PFN_cuMemCreate_v10020 create_ = driver_function<PFN_cuMemCreate_v10020>("cuMemCreate");
  PFN_cuMemAddressReserve_v10020 reserve_ =
      driver_function<PFN_cuMemAddressReserve_v10020>("cuMemAddressReserve");
  PFN_cuMemMap_v10020 map_ = driver_function<PFN_cuMemMap_v10020>("cuMemMap");
  PFN_cuMemSetAccess_v10020 allow_ = driver_function<PFN_cuMemSetAccess_v10020>("cuMemSetAccess");
  PFN_cuMemExportToShareableHandle_v10020 export_ =
      driver_function<PFN_cuMemExportToShareableHandle_v10020>("cuMemExportToShareableHandle");
  PFN_cuMemImportFromShareableHandle_v10020 import_ =
      driver_function<PFN_cuMemImportFromShareableHandle_v10020>("cuMemImportFromShareableHandle");
};

/// A kernel to ask about.
struct Nothing {
  TREERING_DEVICE void operator()(At) const {}
};

/// Zeroes device memory, and waits for that alone.
void zero(int device, void* memory, std::size_t bytes) {
  Lane lane(device);
  check(cudaMemsetAsync(memory, 0, bytes, lane.stream()), "cudaMemsetAsync");
  check(cudaStreamSynchronize(lane.stream()), "cudaStreamSynchronize");
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

constexpr std::size_t some_bytes = std::size_t{8} << 20;

}  // namespace

Rig::Rig(int device) : device_(device) { check(cudaSetDevice(device), "cudaSetDevice"); }

int Rig::attribute(cudaDeviceAttr which) const {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device_), "cudaDeviceGetAttribute");
  return value;
}

void Rig::describe(Findings& findings) const {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  findings.text("driver_for_cuda", version_text(driver));
  findings.text("runtime", version_text(runtime));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
  findings.text("device", properties.name);
  findings.number("memory_bytes", static_cast<double>(properties.totalGlobalMem));
  char pci[32] = "";
  check(cudaDeviceGetPCIBusId(pci, sizeof pci, device_), "cudaDeviceGetPCIBusId");
  findings.text("pci", pci);
  for (const char* name : {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING",
                           "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES"})
    findings.text(name, variable(name));

  cudaFuncAttributes code{};
  check(cudaFuncGetAttributes(&code, &run_task<Nothing>), "cudaFuncGetAttributes");
  findings.number("code_is_for_sm", code.binaryVersion);
  findings.number("code_came_from_ptx", code.ptxVersion);

  const std::pair<const char*, cudaDeviceAttr> attributes[] = {
      {"major", cudaDevAttrComputeCapabilityMajor},
      {"minor", cudaDevAttrComputeCapabilityMinor},
      {"sms", cudaDevAttrMultiProcessorCount},
      {"l2_bytes", cudaDevAttrL2CacheSize},
      {"copy_engines", cudaDevAttrAsyncEngineCount},
      {"registers_of_an_sm", cudaDevAttrMaxRegistersPerMultiprocessor},
      {"mps", cudaDevAttrMpsEnabled},
      {"compute_mode", cudaDevAttrComputeMode},
      {"cooperative_launch", cudaDevAttrCooperativeLaunch},
      {"memory_sync_domains", cudaDevAttrMemSyncDomainCount},
      {"host_native_atomics", cudaDevAttrHostNativeAtomicSupported},
      {"rdma_supported", cudaDevAttrGPUDirectRDMASupported},
      {"rdma_writes_ordering", cudaDevAttrGPUDirectRDMAWritesOrdering},
      {"rdma_flush_options", cudaDevAttrGPUDirectRDMAFlushWritesOptions},
      {"ipc_events", cudaDevAttrIpcEventSupport},
      {"memory_pools", cudaDevAttrMemoryPoolsSupported},
      {"pageable_access", cudaDevAttrPageableMemoryAccess},
      {"host_register", cudaDevAttrHostRegisterSupported},
  };
  for (const auto& [name, which] : attributes) findings.number(name, attribute(which));

  const auto ask = driver_function<PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute");
  const std::pair<const char*, CUdevice_attribute> driver_attributes[] = {
      {"vmm", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
      {"vmm_descriptor", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
      {"fabric", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED},
      {"multicast", CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED},
      {"rdma_with_vmm", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED},
  };
  for (const auto& [name, which] : driver_attributes) {
    int value = 0;
    if (ask(&value, which, device_) == CUDA_SUCCESS) findings.number(name, value);
  }
  for (int peer = 0; peer < machines(OnGpu{}); ++peer) {
    if (peer == device_) continue;
    int can = 0, atomics = 0, rank = 0;
    check(cudaDeviceCanAccessPeer(&can, device_, peer), "cudaDeviceCanAccessPeer");
    const std::string to = "peer_" + std::to_string(peer);
    findings.flag(to + "_accessible", can != 0);
    if (can == 0) continue;
    check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device_, peer),
          "cudaDeviceGetP2PAttribute");
    check(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, device_, peer),
          "cudaDeviceGetP2PAttribute");
    findings.flag(to + "_native_atomics", atomics != 0);
    findings.number(to + "_performance_rank", rank);
  }
}

std::byte* Rig::device_bytes(std::size_t bytes) {
  const OnDevice here(device_);
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  zero(device_, memory, bytes);
  return static_cast<std::byte*>(memory);
}

std::byte* Rig::pinned_bytes(std::size_t bytes) {
  const OnDevice here(device_);
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  return static_cast<std::byte*>(std::memset(memory, 0, bytes));
}

std::byte* Rig::pageable_bytes(std::size_t bytes) {
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (memory == nullptr) throw Error(ErrorCode::out_of_memory, "no host memory for a probe");
  return static_cast<std::byte*>(std::memset(memory, 0, bytes));
}

std::pair<std::uint64_t*, std::uint64_t*> Rig::two_addresses(std::size_t count) {
  const Virtual memory(device_);
  const std::size_t bytes = count * sizeof(std::uint64_t);
  const auto handle = memory.create(bytes);
  const std::pair both(memory.usable(handle, bytes), memory.usable(handle, bytes));
  zero(device_, both.first, bytes);
  return both;
}

std::uint64_t* Rig::share(Sharing how, std::size_t count, Shared& shared) {
  shared.bytes = count * sizeof(std::uint64_t);
  if (how == Sharing::vmm) {
    const Virtual memory(device_);
    const auto handle = memory.create(shared.bytes);
    shared.descriptor = memory.descriptor(handle);
    std::uint64_t* const at = memory.usable(handle, shared.bytes);
    zero(device_, at, shared.bytes);
    return at;
  }
  // A handle names a whole allocation; a small one would be a part of another.
  constexpr std::size_t least_words = (std::size_t{2} << 20) / sizeof(std::uint64_t);
  std::uint64_t* const at = device_words(std::max(count, least_words));
  cudaIpcMemHandle_t handle;
  static_assert(sizeof handle == sizeof shared.handle);
  check(cudaIpcGetMemHandle(&handle, at), "cudaIpcGetMemHandle");
  std::memcpy(shared.handle.data(), &handle, sizeof handle);
  return at;
}

std::uint64_t* Rig::open(Sharing how, const Shared& shared) {
  if (how == Sharing::vmm) {
    const Virtual memory(device_);
    return memory.usable(memory.import(shared.descriptor), shared.bytes);
  }
  cudaIpcMemHandle_t handle;
  std::memcpy(&handle, shared.handle.data(), sizeof handle);
  void* at = nullptr;
  check(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
  return static_cast<std::uint64_t*>(at);
}

bool Rig::reach(const Rig& other) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device_, other.device_), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const OnDevice here(device_);
  const cudaError_t result = cudaDeviceEnablePeerAccess(other.device_, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return true;
  }
  check(result, "cudaDeviceEnablePeerAccess");
  return true;
}

void Rig::copy(Lane& lane, void* to, const void* from, std::size_t bytes) {
  const OnDevice here(lane.device());
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, lane.stream()), "cudaMemcpyAsync");
}

bool Rig::wait(Lane& lane, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const cudaError_t result = cudaStreamQuery(lane.stream());
    if (result != cudaErrorNotReady) {
      check(result, "cudaStreamQuery");
      return true;
    }
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
}

Capture::Capture(std::vector<cudaStream_t> streams) : streams_(std::move(streams)) {
  check(cudaStreamBeginCapture(streams_[0], cudaStreamCaptureModeRelaxed),
        "cudaStreamBeginCapture");
  cudaEvent_t begin = nullptr;
  check(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  check(cudaEventRecord(begin, streams_[0]), "cudaEventRecord");
  for (std::size_t i = 1; i < streams_.size(); ++i)
    check(cudaStreamWaitEvent(streams_[i], begin, cudaEventWaitDefault), "cudaStreamWaitEvent");
}

cudaGraphExec_t Capture::end() {
  for (std::size_t i = 1; i < streams_.size(); ++i) {
    cudaEvent_t end = nullptr;
    check(cudaEventCreateWithFlags(&end, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check(cudaEventRecord(end, streams_[i]), "cudaEventRecord");
    check(cudaStreamWaitEvent(streams_[0], end, cudaEventWaitDefault), "cudaStreamWaitEvent");
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(streams_[0], &graph), "cudaStreamEndCapture");
  cudaGraphExec_t ready = nullptr;
  check(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  return ready;
}

Graph Rig::capture(std::span<Lane> lanes, const std::function<void()>& calls) {
  std::vector<cudaStream_t> streams;
  for (const Lane& lane : lanes) streams.push_back(lane.stream());
  Capture capture(std::move(streams));
  calls();
  return Graph(capture.end());
}

std::vector<Action> actions() {
  const auto launch = [](Rig& rig) {
    return [lane = rig.lane(), &rig]() mutable {
      launch_late(lane.stream());
      rig.wait(lane, 5);
    };
  };
  return {
      {"first_launch_lazy", launch, {"CUDA_MODULE_LOADING=LAZY"}},
      {"first_launch_eager", launch, {"CUDA_MODULE_LOADING=EAGER"}},
      {"malloc",
       [](Rig&) {
         return [] {
           void* memory = nullptr;
           check(cudaMalloc(&memory, some_bytes), "cudaMalloc");
         };
       }},
      {"free",
       [](Rig& rig) {
         return [memory = rig.device_bytes(some_bytes)] { check(cudaFree(memory), "cudaFree"); };
       }},
      {"malloc_async",
       [](Rig& rig) {
         return [lane = rig.lane()] {
           void* memory = nullptr;
           check(cudaMallocAsync(&memory, some_bytes, lane.stream()), "cudaMallocAsync");
         };
       }},
      {"host_alloc", [](Rig& rig) { return [&rig] { rig.pinned_bytes(some_bytes); }; }},
      {"host_free",
       [](Rig& rig) {
         return [memory = rig.pinned_bytes(some_bytes)] {
           check(cudaFreeHost(memory), "cudaFreeHost");
         };
       }},
      {"host_register",
       [](Rig& rig) {
         return [memory = rig.pageable_bytes(some_bytes)] {
           check(cudaHostRegister(memory, some_bytes, cudaHostRegisterMapped), "cudaHostRegister");
         };
       }},
      {"host_unregister",
       [](Rig& rig) {
         std::byte* const memory = rig.pageable_bytes(some_bytes);
         check(cudaHostRegister(memory, some_bytes, cudaHostRegisterMapped), "cudaHostRegister");
         return [memory] { check(cudaHostUnregister(memory), "cudaHostUnregister"); };
       }},
      {"stream_create", [](Rig& rig) { return [&rig] { rig.lane(); }; }},
      {"stream_destroy",
       [](Rig& rig) {
         return
             [lane = rig.lane()] { check(cudaStreamDestroy(lane.stream()), "cudaStreamDestroy"); };
       }},
      {"event_create",
       [](Rig&) {
         return [] {
           cudaEvent_t event = nullptr;
           check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                 "cudaEventCreateWithFlags");
         };
       }},
      {"set_access",
       [](Rig&) {
         const Virtual memory(0);
         const CUdeviceptr at = memory.map(memory.create(some_bytes), some_bytes);
         return [memory, at] { memory.allow(at, some_bytes); };
       }},
      {"stack_growth",
       [](Rig&) {
         return [] {
           std::size_t stack = 0;
           check(cudaDeviceGetLimit(&stack, cudaLimitStackSize), "cudaDeviceGetLimit");
           check(cudaDeviceSetLimit(cudaLimitStackSize, 4 * stack), "cudaDeviceSetLimit");
         };
       }},
      {"pinned_copy",
       [](Rig& rig) {
         return [&rig, lane = rig.lane(), to = rig.device_bytes(some_bytes),
                 from = rig.pinned_bytes(some_bytes)]() mutable {
           rig.copy(lane, to, from, some_bytes);
           rig.wait(lane, 5);
         };
       }},
      {"pageable_copy",
       [](Rig& rig) {
         return [&rig, lane = rig.lane(), to = rig.device_bytes(some_bytes),
                 from = rig.pageable_bytes(some_bytes)]() mutable {
           rig.copy(lane, to, from, some_bytes);
           rig.wait(lane, 5);
         };
       }},
      {"default_stream_memset",
       [](Rig& rig) {
         return [memory = rig.device_bytes(some_bytes)] {
           check(cudaMemset(memory, 0, some_bytes), "cudaMemset");
           check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
         };
       }},
      {"graph_instantiate",
       [](Rig& rig) {
         return [&rig, lane = rig.lane(), to = rig.device_words(1)]() mutable {
           rig.capture(std::span(&lane, 1), [&] { rig.copy(lane, to, to, 8); });
         };
       }},
  };
}

}  // namespace on_gpu

namespace {

class GraphRecording final : public Recording {
 public:
  GraphRecording(std::span<Stream> streams, const std::function<void()>& calls) {
    std::vector<cudaStream_t> native;
    for (const Stream& stream : streams)
      native.push_back(static_cast<cudaStream_t>(stream.native()));
    stream_ = native[0];
    on_gpu::Capture capture(native);
    calls();
    graph_ = capture.end();
  }
  void replay() override { check(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch"); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t graph_;
};

}  // namespace

std::unique_ptr<Recording> record_graph(std::span<Stream> streams,
                                        const std::function<void()>& calls) {
  return std::make_unique<GraphRecording>(streams, calls);
}

}  // namespace treering::gpu_check
