#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <string>

#include "kernels/exec/cuda/check.hpp"
#include "treering/error.hpp"

namespace treering {

/// A function of the driver, which is looked up at run time so that binaries start without one.
template <class Function>
Function driver_function(const char* name) {
  constexpr unsigned int cuda_version = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &function, cuda_version, cudaEnableDefault, &found),
        name);
  if (found != cudaDriverEntryPointSuccess)
    throw Error(ErrorCode::system, std::string("the CUDA driver has no ") + name);
  return reinterpret_cast<Function>(function);
}

}  // namespace treering
