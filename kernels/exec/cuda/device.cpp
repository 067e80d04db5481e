#include "kernels/exec/cuda/device.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "kernels/exec/cuda/check.hpp"
#include "kernels/exec/cuda/kernels.hpp"
#include "kernels/exec/cuda/memory.hpp"
#include "kernels/exec/cuda/queue.hpp"
#include "kernels/ops/device_fold.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// Streaming multiprocessors that are left to the user's own kernels.
constexpr int reserved_sms = 8;
/// Most blocks that one rank may have, however empty the GPU is.
constexpr int most_blocks = 64;
/// Lanes made in advance: enough for a few streams of each of a process's ranks.
constexpr int ready_lanes = 32;
/// The granule of cudaMalloc. Smaller allocations could share one, and then share its IPC handle.
constexpr std::size_t granule = std::size_t{2} << 20;

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

/// Streams whose kernels may be in flight at once without waiting for each other.
int hardware_queues(bool mps) {
  const char* set = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (set != nullptr) return std::max(std::atoi(set), 1);
  return mps ? 2 : 8;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int device)
      : device_(device),
        sms_(attribute(cudaDevAttrMultiProcessorCount, device)),
        mps_(attribute(cudaDevAttrMpsEnabled, device) != 0),
        blocks_per_sm_(load_kernels()),
        traits_{.device = device,
                .cooperative = attribute(cudaDevAttrCooperativeLaunch, device) != 0,
                .remote_domain = attribute(cudaDevAttrMemSyncDomainCount, device) > 1},
        lanes_(device, ready_lanes),
        setup_(traits_, lanes_) {
    check(cudaGetDeviceProperties(&properties_, device), "cudaGetDeviceProperties");
  }

  Execution execution() const override { return Execution::cuda; }
  std::string describe() const override {
    return fmt::format("{}, {} SMs, sm_{}{}{}", properties_.name, sms_, properties_.major,
                       properties_.minor, mps_ ? ", MPS" : "");
  }
  std::string identity() const override {
    std::string text = "GPU-";
    for (const char byte : properties_.uuid.bytes)
      text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
  }

  void* allocate(std::size_t bytes) override {
    const OnDevice here(device_);
    const std::size_t whole = std::max((bytes + granule - 1) / granule, std::size_t{1}) * granule;
    void* memory = nullptr;
    check(cudaMalloc(&memory, whole), "cudaMalloc");
    setup_.zero(memory, whole);
    setup_.synchronize();
    return memory;
  }
  void deallocate(void* memory) noexcept override { cudaFree(memory); }

  void* allocate_control(std::size_t bytes) override {
    const OnDevice here(device_);
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc");
    return std::memset(memory, 0, bytes);
  }
  void deallocate_control(void* memory) noexcept override { cudaFreeHost(memory); }

  void* device_view(void* host, std::size_t bytes) override {
    return views_.add(device_, host, bytes);
  }
  void release_view(void* host, std::size_t bytes) noexcept override { views_.remove(host, bytes); }

  void copy_now(void* destination, const void* source, std::size_t bytes) override {
    setup_.copy(destination, source, bytes);
    setup_.synchronize();
  }

  bool export_memory(const void* pointer, MemoryHandle& handle, std::size_t& offset) override {
    return export_ipc(device_, pointer, handle, offset);
  }
  std::unique_ptr<Mapping> import_memory(const MemoryHandle& handle) override {
    return import_ipc(device_, handle);
  }

  std::unique_ptr<Queue> create_queue() override {
    return std::make_unique<CudaQueue>(traits_, lanes_);
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<CudaEvent>(device_); }

  void run(const Launch& launch) override {
    CudaQueue queue(traits_, lanes_);
    queue.launch(launch);
    queue.synchronize();
  }
  void launch_together(std::span<Queue* const> queues, std::span<const Launch> launches) override {
    launch_teams(queues, launches);
  }

  int blocks(int wanted, int ranks) const override {
    const int budget = std::min(resident_blocks() / std::max(ranks, 1), most_blocks);
    return wanted != 0 ? std::min(wanted, budget) : budget;
  }
  // A direct all-reduce folds from everyone to everyone, and all must run at the same time.
  int most_ranks() const override { return std::min(resident_blocks(), device_max_fan / 2); }

  bool reaches(const void* memory) const override {
    const OnDevice here(device_);
    cudaPointerAttributes what{};
    check(cudaPointerGetAttributes(&what, memory), "cudaPointerGetAttributes");
    return what.devicePointer != nullptr;
  }

  std::string caution(int ranks, int processes) const override {
    if (processes > 1 && !mps_)
      return fmt::format(
          "{} processes share {} without MPS: their kernels take turns, and every message costs "
          "milliseconds. Results are right, times mean nothing. Start the MPS control daemon "
          "(nvidia-cuda-mps-control -d), or make ranks threads of one process",
          processes, describe());
    const int streams = (ranks + processes - 1) / std::max(processes, 1);
    if (const int queues = hardware_queues(mps_); streams > queues)
      return fmt::format(
          "{} ranks of a process share {}, but only {} streams run independently, so ranks that "
          "launch one by one can wait for each other for ever. Set CUDA_DEVICE_MAX_CONNECTIONS={} "
          "(32 at most) before the process starts, or launch them together",
          streams, describe(), queues, std::min(streams, 32));
    return {};
  }

 private:
  int device_, sms_;
  bool mps_;
  /// How many blocks of any kernel run at once, if nothing else does.
  int resident_blocks() const { return blocks_per_sm_ * std::max(sms_ - reserved_sms, 1); }

  int blocks_per_sm_;
  LaunchTraits traits_;
  cudaDeviceProp properties_{};
  LanePool lanes_;
  CudaQueue setup_;  ///< for work before kernels run
  HostViews views_;
};

}  // namespace

bool cuda_available() noexcept {
  int devices = 0, device = 0, major = 0;
  constexpr int oldest_major = 8;
  const bool available =
      cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 &&
      cudaGetDevice(&device) == cudaSuccess &&
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess;
  cudaGetLastError();
  return available && major >= oldest_major;
}

std::unique_ptr<Device> make_cuda_device() {
  if (!cuda_available()) {
    int devices = 0;
    const cudaError_t why = cudaGetDeviceCount(&devices);
    cudaGetLastError();
    throw Error(
        ErrorCode::unsupported,
        fmt::format("there is no GPU of compute capability 8.0 or more to be used ({}); set "
                    "TREERING_DEVICE=host to compute on the CPU",
                    cudaGetErrorString(why)));
  }
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaSetDevice(device), "cudaSetDevice");
  return std::make_unique<CudaDevice>(device);
}

}  // namespace treering
