#pragma once

// What the user of `treering perf` asked for.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "treering/types.hpp"

namespace CLI {
class App;
}

namespace treering::perf {

struct Options {
  std::vector<Collective> collectives;  ///< one, or every one there is
  int ranks = 2;
  bool threads = false;  ///< ranks are threads of this process, not processes
  std::size_t min_bytes = 8, max_bytes = 16 << 20;
  std::size_t step_bytes = 0;  ///< 0: step_factor counts
  std::size_t step_factor = 8;
  int iterations = 20, warmups = 5, calls_per_iteration = 1, checks = 1;
  std::vector<ReduceOp> ops;
  std::vector<DataType> types;
  std::vector<int> roots = {0};  ///< for collectives that have one
  std::optional<Algorithm> algorithm;
  std::optional<WireType> wire;
  bool deterministic = false;
  bool registered = true;           ///< buffers of Treering's allocator, not plain memory
  bool rewrite = false;             ///< inputs are written anew before each timed iteration
  bool pin = true;                  ///< each rank stays on its share of the cores
  bool forced_choices = false;      ///< compare Treering's choice with all others
  std::string json;                 ///< file to write; empty: none
  std::vector<std::string> versus;  ///< peers to compare with; empty: no comparison
  std::string peers_folder;         ///< where their launchers are
  int rounds = 20;                  ///< of a comparison, for each case

  /// True if every collective is asked for; then a forced algorithm or wire counts wherever it exists.
  bool all() const { return collectives.size() > 1; }
};

/// What the command line says, before it is understood. Lives as long as the App that fills it.
struct Arguments {
  std::string collective, minbytes, maxbytes, stepbytes, factor;
  std::string op = "sum", type = "f32", root = "0", algorithm, wire, json;
  int ranks = 2, iterations = 20, warmups = 5, calls_per_iteration = 1, checks = 1;
  int registered = 1, rewrite = 0, deterministic = 0;
  std::optional<int> pin;
  bool threads = false, procs = false, forced_choices = false;
  std::string versus, peers_folder;  ///< the latter is hidden: for tests
  std::optional<int> rounds;
  std::string worker;     ///< hidden: this process is a rank; see workers.hpp
  std::string contender;  ///< hidden: this process is a rank of a comparison; see versus/ours.hpp
};

/// Declares the options, with their help.
void declare(CLI::App& command, Arguments& arguments);

/// Throws Error{invalid_argument} with a sentence that names the option and its value.
Options understand(const Arguments& arguments);

}  // namespace treering::perf
