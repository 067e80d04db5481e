#pragma once

// Memory that several processes, or host and device, share.
//
// Device memory travels by CUDA IPC: a handle names an allocation of cudaMalloc. Memory from other
// allocators (virtual memory management, pools) cannot be had this way and is staged.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "kernels/exec/device.hpp"

namespace treering {

/// Device::export_memory()
bool export_ipc(int device, const void* pointer, MemoryHandle& handle, std::size_t& offset);

/// Device::import_memory(). However often it is imported, a process maps an allocation once: two
/// addresses of the same memory would not be coherent within a kernel. Throws Error{unsupported} if
/// it cannot be had.
std::unique_ptr<Mapping> import_ipc(int device, const MemoryHandle& handle);

/// Host memory that kernels can reach, page by page: pinned by the first who asks, until the last
/// one lets go. Let go before pages are unmapped or given back: the GPU would keep the old ones.
class HostViews {
 public:
  /// The address for kernels, which is the same. Memory of cudaHostAlloc may be asked for as well.
  void* add(int device, void* host, std::size_t bytes);
  void remove(void* host, std::size_t bytes) noexcept;

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, int> users_;  ///< of each page that is pinned
};

}  // namespace treering
