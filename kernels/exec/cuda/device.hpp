#pragma once

#include <memory>

#include "kernels/exec/device.hpp"

namespace treering {

/// True if there is a GPU and a driver that this build can use. Never throws, and needs no driver
/// to link. Asking initialises CUDA where there is one: a process that forks afterwards must not
/// use CUDA in the child.
bool cuda_available() noexcept;

/// The `cuda` execution on the calling thread's current GPU, from then on whichever thread calls.
/// Loads every kernel, so that no later launch waits for other kernels to end. Throws
/// Error{unsupported} without a usable GPU, Error{system} if the driver refuses something.
std::unique_ptr<Device> make_cuda_device();

}  // namespace treering
