#pragma once

// `treering tune`: measures the costs by which Treering chooses on this machine, and keeps them in the user's cache
// folder. First how data is best stored and cut, by that then every way of every collective.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace treering::perf {

/// What the command line says.
struct TuneArguments {
  std::string ranks;             ///< "4", "2-8"; empty: as many as there are cores, 2 to 8
  std::string policies, worker;  ///< hidden: this process is a rank, and what was found before it
};

void declare(CLI::App& command, TuneArguments& arguments);

/// Returns the exit status. Throws Error: `invalid_argument`, `system` where costs cannot be stored, or what befell a
/// rank.
int run(const TuneArguments&, const std::string& program);

}  // namespace treering::perf
