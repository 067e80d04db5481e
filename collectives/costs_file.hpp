#pragma once

// Where the costs that `treering tune` measured are kept: one file for each host and number of ranks, in the user's
// cache folder. Functions without state; callable from any thread.

#include <filesystem>

#include "kernels/exec/device.hpp"
#include "plan/costs.hpp"

namespace treering {

/// The file of this host: in $XDG_CACHE_HOME/treering, or in ~/.cache/treering; empty if neither variable is set.
std::filesystem::path costs_file(int ranks);

/// What a communicator of that many ranks on this host chooses by: what was measured for the CPU, if it was; else the
/// built-in costs. A file that cannot be used is warned of in the log.
Costs find_costs(Execution, int ranks);

/// Replaces the file, as a whole or not at all, and makes its folder if need be. Throws Error{system}.
void store_costs(const Costs&, int ranks);

}  // namespace treering
