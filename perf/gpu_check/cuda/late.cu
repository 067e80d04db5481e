// A kernel in a module of its own, so that its first launch has something to load.

#include "perf/gpu_check/cuda/rig.hpp"

namespace treering::gpu_check::on_gpu {
namespace {

__global__ void late() {}

}  // namespace

void launch_late(cudaStream_t stream) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&late), nullptr),
        "cudaLaunchKernelExC");
}

}  // namespace treering::gpu_check::on_gpu
