#pragma once

// The ranks of one run, as processes or as threads, and the command that waits for them.
//
//     command ──┬─ spawn ──► rank 0 ──┐  rows, failures: one pipe per rank
//        ▲      ├─ spawn ──► rank 1   │  barriers and sums: the control memory
//        │      └─ …                  │
//        └────────────────────────────┘  the end of a pipe is the end of its rank
//
// A process rank is this same program, with the same arguments and the hidden option --worker. The
// kernel kills it when the command ends, however that happens.

#include <functional>
#include <string>
#include <vector>

#include "perf/bench/control.hpp"
#include "perf/bench/message.hpp"
#include "perf/bench/options.hpp"

namespace treering::perf {

/// Where a rank runs, for people.
struct RankPlace {
  int process;
  std::string device;
};

/// Told in the command's own thread.
struct Listener {
  std::function<void(const std::vector<RankPlace>&)> started;  ///< once, before any row
  std::function<void(const Message&)> row;                     ///< in the order of the cases
};

/// What each rank does, in step with the others; rank 0 sends its rows to `pipe`.
using RankBody = std::function<void(Communicator&, Control&, int pipe)>;

/// Runs the body on all ranks and returns when every rank has ended. `command_line`: this program's arguments.
/// Throws Error that names the ranks which failed, and how, within about two seconds of the
/// failure.
void run_ranks(const Options&, const RankBody&, const std::vector<std::string>& command_line,
               const Listener&);

/// The life of a rank that is a process. `seat`: the value of --worker. Returns the exit status.
int run_worker(const Options&, const RankBody&, const std::string& seat);

}  // namespace treering::perf
