#pragma once

#include <span>

#include "treering/types.hpp"

namespace treering {

/// A kernel's code, as cudaLaunchKernelExC takes it: `__global__ void (Team)` of launch.hpp.
struct KernelEntry {
  Collective collective;
  Algorithm algorithm;
  WireType wire;
  const void* code;
};

/// All kernels of the catalog.
std::span<const KernelEntry> kernel_entries() noexcept;

/// The kernel of that name. Throws Error{unsupported} if there is none.
const void* kernel_code(Collective, Algorithm, WireType);

/// Loads every kernel on the current device: a first launch, and one that needs more stack than
/// there is, would otherwise wait until all running kernels have ended, which may be waiting for
/// it. Returns how many blocks of the largest kernel an SM can hold.
int load_kernels();

}  // namespace treering
