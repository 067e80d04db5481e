#pragma once

// How Treering calls CUDA: every result is checked where it comes from, and errors become
// treering::Error.

#include <cuda_runtime_api.h>

namespace treering {

/// Throws if `result` is an error: out_of_memory, unsupported (no GPU, no driver, no code for this
/// GPU), or system. `call` is the CUDA function's name. The runtime's "last error" is left clear.
void check(cudaError_t result, const char* call);

/// While it lives, this thread's CUDA calls go to `device`, and do not break a graph capture that
/// another thread has under way (to the caller's own captures it makes no difference). Restores
/// both.
class OnDevice {
 public:
  explicit OnDevice(int device);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();

 private:
  int device_, before_ = 0;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace treering
