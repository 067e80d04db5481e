#include "kernels/exec/cuda/memory.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/exec/cuda/check.hpp"
#include "kernels/exec/cuda/driver.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::size_t page_bytes = 4096;

/// Beginnings of the pages around some bytes.
std::vector<std::uintptr_t> pages(const void* host, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(host);
  std::vector<std::uintptr_t> all;
  for (std::uintptr_t page = begin / page_bytes * page_bytes; page < begin + bytes;
       page += page_bytes)
    all.push_back(page);
  return all;
}

static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(MemoryHandle::bytes));

struct Driver {
  PFN_cuPointerGetAttribute_v4000 pointer_attribute =
      driver_function<PFN_cuPointerGetAttribute_v4000>("cuPointerGetAttribute");
  PFN_cuMemGetAddressRange_v3020 address_range =
      driver_function<PFN_cuMemGetAddressRange_v3020>("cuMemGetAddressRange");
};

/// An allocation of another process, mapped.
struct OpenHandle {
  OpenHandle(int device_, const MemoryHandle& handle) : device(device_) {
    cudaIpcMemHandle_t ipc;
    std::memcpy(&ipc, handle.bytes.data(), sizeof ipc);
    const OnDevice here(device);
    const cudaError_t result = cudaIpcOpenMemHandle(&base, ipc, cudaIpcMemLazyEnablePeerAccess);
    if (result == cudaSuccess) return;
    cudaGetLastError();
    throw Error(
        ErrorCode::unsupported,
        fmt::format("memory of another process cannot be mapped: cudaIpcOpenMemHandle says {}. In "
                    "containers, ranks must share the IPC and pid namespaces",
                    cudaGetErrorString(result)));
  }
  OpenHandle(const OpenHandle&) = delete;
  OpenHandle& operator=(const OpenHandle&) = delete;
  ~OpenHandle() {
    int before = device;
    cudaGetDevice(&before);
    cudaSetDevice(device);  // closing needs the context that opened it
    cudaIpcCloseMemHandle(base);
    cudaSetDevice(before);
  }

  int device;
  void* base = nullptr;
};

class IpcMapping final : public Mapping {
 public:
  explicit IpcMapping(std::shared_ptr<OpenHandle> handle) : handle_(std::move(handle)) {}
  std::byte* base() const override { return static_cast<std::byte*>(handle_->base); }

 private:
  std::shared_ptr<OpenHandle> handle_;
};

}  // namespace

bool export_ipc(int device, const void* pointer, MemoryHandle& handle, std::size_t& offset) {
  static const Driver driver;
  const OnDevice here(device);
  const auto address = reinterpret_cast<CUdeviceptr>(pointer);

  int capable = 0;
  if (driver.pointer_attribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                               address) != CUDA_SUCCESS ||
      capable == 0)
    return false;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  if (driver.address_range(&base, &size, address) != CUDA_SUCCESS) return false;
  cudaIpcMemHandle_t ipc;
  if (cudaIpcGetMemHandle(&ipc, reinterpret_cast<void*>(base)) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  handle = {.bytes = {}, .size = size, .descriptor = -1};
  std::memcpy(handle.bytes.data(), &ipc, sizeof ipc);
  offset = address - base;
  return true;
}

std::unique_ptr<Mapping> import_ipc(int device, const MemoryHandle& handle) {
  static std::mutex mutex;
  static std::map<std::array<std::byte, 64>, std::weak_ptr<OpenHandle>> open;
  const std::lock_guard lock(mutex);
  std::shared_ptr<OpenHandle> mapped = open[handle.bytes].lock();
  if (!mapped) {
    std::erase_if(open, [](const auto& entry) { return entry.second.expired(); });
    mapped = std::make_shared<OpenHandle>(device, handle);
    open[handle.bytes] = mapped;
  }
  return std::make_unique<IpcMapping>(std::move(mapped));
}

void* HostViews::add(int device, void* host, std::size_t bytes) {
  const OnDevice here(device);
  const std::lock_guard lock(mutex_);
  for (const std::uintptr_t page : pages(host, bytes)) {
    if (const auto found = users_.find(page); found != users_.end()) {
      ++found->second;
      continue;
    }
    void* const start = reinterpret_cast<void*>(page);
    cudaPointerAttributes known{};
    check(cudaPointerGetAttributes(&known, start), "cudaPointerGetAttributes");
    if (known.type == cudaMemoryTypeHost) continue;  // cudaHostAlloc's
    check(cudaHostRegister(start, page_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
          "cudaHostRegister");
    users_.emplace(page, 1);
  }
  void* view = nullptr;
  check(cudaHostGetDevicePointer(&view, host, 0), "cudaHostGetDevicePointer");
  if (view != host)
    throw Error(ErrorCode::unsupported,
                "this GPU does not reach host memory at the host's own addresses");
  return view;
}

void HostViews::remove(void* host, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  for (const std::uintptr_t page : pages(host, bytes)) {
    const auto found = users_.find(page);
    if (found == users_.end() || --found->second > 0) continue;
    cudaHostUnregister(reinterpret_cast<void*>(page));
    users_.erase(found);
  }
}

}  // namespace treering
