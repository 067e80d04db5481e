#pragma once

#include <cstddef>

namespace treering {

/// Whether a run of memory lies inside one live Buffer of this process. Thread-safe.
bool buffer_holds(const void* memory, std::size_t bytes);

}  // namespace treering
