#include "kernels/exec/cuda/check.hpp"

#include <fmt/format.h>

#include "treering/error.hpp"

namespace treering {
namespace {

ErrorCode code_of(cudaError_t result) {
  switch (result) {
    case cudaErrorMemoryAllocation:
      return ErrorCode::out_of_memory;
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorPeerAccessUnsupported:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::system;
  }
}

}  // namespace

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  cudaGetLastError();
  throw Error(code_of(result), fmt::format("CUDA refused {}: {} ({})", call,
                                           cudaGetErrorString(result), cudaGetErrorName(result)));
}

OnDevice::OnDevice(int device) : device_(device) {
  check(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != device_) check(cudaSetDevice(device_), "cudaSetDevice");
  check(cudaThreadExchangeStreamCaptureMode(&mode_), "cudaThreadExchangeStreamCaptureMode");
}

OnDevice::~OnDevice() {
  cudaThreadExchangeStreamCaptureMode(&mode_);
  if (before_ != device_) cudaSetDevice(before_);
}

}  // namespace treering
