#pragma once

// Treering as one of the contenders.

#include <string>
#include <vector>

#include "perf/bench/options.hpp"

namespace treering::perf {

/// The life of one of our own ranks. `seat`: the value of --contender. Returns the exit status.
int attend_as_ours(const Options&, const std::string& seat);

/// The command that starts a rank of ours: this program with its arguments, and a seat.
std::vector<std::string> our_command(const std::vector<std::string>& command_line,
                                     const std::string& address, int rank);

}  // namespace treering::perf
