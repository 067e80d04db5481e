#include "kernels/exec/cuda/kernels.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/exec/cuda/check.hpp"
#include "kernels/exec/cuda/launch.hpp"
#include "treering/error.hpp"

namespace treering {

const void* kernel_code(Collective collective, Algorithm algorithm, WireType wire) {
  for (const KernelEntry& entry : kernel_entries())
    if (entry.collective == collective && entry.algorithm == algorithm && entry.wire == wire)
      return entry.code;
  throw Error(ErrorCode::unsupported, fmt::format("there is no {} kernel for {} over {} wires",
                                                  name(algorithm), name(collective), name(wire)));
}

int load_kernels() {
  int fewest = std::numeric_limits<int>::max();
  std::size_t stack = 0;
  check(cudaDeviceGetLimit(&stack, cudaLimitStackSize), "cudaDeviceGetLimit");
  for (const KernelEntry& entry : kernel_entries()) {
    cudaFuncAttributes needs{};
    check(cudaFuncGetAttributes(&needs, entry.code), "cudaFuncGetAttributes");
    stack = std::max(stack, needs.localSizeBytes);
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, entry.code, block_threads, 0),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    fewest = std::min(fewest, blocks);
  }
  check(cudaDeviceSetLimit(cudaLimitStackSize, stack), "cudaDeviceSetLimit");
  return fewest;
}

}  // namespace treering
