#pragma once

#include <memory>

#include "kernels/exec/device.hpp"

namespace treering {

/// The `host` execution: kernels run on CPU threads, memory is this process's shared arena.
/// `threads`: OS threads that the blocks of one rank may use at once.
std::unique_ptr<Device> make_host_device(int threads);

}  // namespace treering
