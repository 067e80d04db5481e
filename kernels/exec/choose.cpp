// Which execution this process uses, decided once.

#include <algorithm>
#include <thread>

#include "base/settings.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/host/arena.hpp"
#include "kernels/exec/host/device.hpp"
#include "kernels/exec/simt/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "treering/error.hpp"
#ifdef TREERING_HAS_CUDA
#include "kernels/exec/cuda/device.hpp"
#endif

namespace treering {
namespace {

int host_threads() {
  const int wanted = settings().host_threads;
  return wanted != 0 ? wanted : std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

#ifndef TREERING_HAS_CUDA
bool cuda_available() noexcept { return false; }
std::unique_ptr<Device> make_cuda_device() {
  throw Error(
      ErrorCode::unsupported,
      "TREERING_DEVICE=cuda, but this Treering was built without CUDA; build the preset `cuda`, "
      "or set TREERING_DEVICE=host");
}
#endif

std::unique_ptr<Device> make_device() {
  process_arena(settings().arena);  // whatever the device: ranks show each other their boards there
  switch (settings().device) {
    case DeviceChoice::cuda:
      return make_cuda_device();
    case DeviceChoice::host:
      return make_host_device(host_threads());
    case DeviceChoice::simt: {
      const Settings& s = settings();
      simt::configure(
          {.seed = s.simt_seed, .threads = s.simt_threads, .patience = s.simt_patience});
      return make_simt_device();
    }
    case DeviceChoice::automatic:
      break;
  }
  return cuda_available() ? make_cuda_device() : make_host_device(host_threads());
}

}  // namespace

const char* name(Execution execution) noexcept {
  switch (execution) {
    case Execution::cuda:
      return "cuda";
    case Execution::host:
      return "host";
    case Execution::simt:
      return "simt";
  }
  return "?";
}

Device& device() {
  // Never destroyed: buffers and communicators of static life may outlive any order of destruction.
  static Device& chosen = *make_device().release();
  return chosen;
}

}  // namespace treering
