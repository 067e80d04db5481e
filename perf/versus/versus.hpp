#pragma once

// `treering perf … --versus PEERS`: Treering and other libraries at the same sizes, in the same run,
// in turn. All of them are timed by the same loop (perf/peers/loop.cpp).
//
//     case ─► round ─► probe │ ours │ peer │ peer │ … │ probe      (a round is shorter than a second)
//               └─► as often as --rounds says; the two probes tell near rounds from far ones

#include <string>
#include <vector>

#include "perf/bench/cases.hpp"

namespace treering::perf {

/// All of it, with a table as it goes. `command_line`: this program's arguments. Returns the exit
/// status. Throws Error if Treering fails, or if there is no peer to compare with.
int run_versus(const Options&, const std::vector<Case>&,
               const std::vector<std::string>& command_line);

}  // namespace treering::perf
