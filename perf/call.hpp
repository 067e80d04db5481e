#pragma once

#include "perf/patterns.hpp"
#include "treering/treering.hpp"

namespace treering {

/// Makes the call of a collective that a pattern describes, with the rank's buffers.
void make_call(Communicator&, const Pattern&, const void* input, void* output, const CallOptions&);

}  // namespace treering
