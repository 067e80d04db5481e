#pragma once

#include <string>
#include <vector>

#include "perf/bench/options.hpp"

namespace treering::perf {

/// `treering perf`, with its arguments read and the command line they came from. Returns the exit
/// status: 0, or 1 if a result was wrong. Throws Error if a rank failed or an option makes no
/// sense.
int run(const Arguments&, const std::vector<std::string>& command_line);

}  // namespace treering::perf
