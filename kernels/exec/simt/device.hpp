#pragma once

#include <memory>

#include "kernels/exec/device.hpp"

namespace treering {

/// The `simt` execution: a GPU simulated by fibers, for tests. Its memory is plain memory of this
/// process, and no other process can map it. Its behaviour is set by simt::configure().
std::unique_ptr<Device> make_simt_device();

}  // namespace treering
