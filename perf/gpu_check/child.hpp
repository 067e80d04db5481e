#pragma once

// A probe's process.
//
//     runner ── spawn ──► treering-gpu-check --probe NAME     own process group, killed at the deadline
//        ▲                   │ findings: a pipe, one JSON line each
//        └───────────────────┘ everything it prints: a log file

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace treering::gpu_check {

/// The descriptor of the pipe in the probe's process.
inline constexpr int findings_descriptor = 3;

struct Command {
  std::vector<std::string> words;        ///< program and arguments
  std::vector<std::string> environment;  ///< NAME=value, beside this process's own
  std::string log;                       ///< file for what it prints
};

/// How a process ended.
struct Ending {
  bool in_time = true;  ///< false: it was killed at its deadline
  bool gone = true;     ///< false: not even that ended it
  int status = 0;       ///< exit status, or minus the signal
};

/// Runs the command, hands over each line of its pipe as it comes, and returns when it has ended
/// and none of its descendants is left. Throws Error{system} if it cannot be started.
Ending run_child(const Command&, std::chrono::steady_clock::time_point deadline,
                 const std::function<void(const std::string&)>& line);

/// Where this program lies; it starts itself again for each probe.
std::string own_path();

}  // namespace treering::gpu_check
