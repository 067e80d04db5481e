#pragma once

#include "perf/patterns.hpp"
#include "treering/treering.hpp"

namespace treering::perf {

/// The call that a pattern describes.
void make_call(Communicator&, const Pattern&, const void* in, void* out, const CallOptions& how);

}  // namespace treering::perf
