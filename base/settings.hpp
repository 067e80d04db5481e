#pragma once

// The environment variables that Treering reads. There is one table of them, in settings.cpp: name,
// values, default, meaning; docs/environment.md shows it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "treering/types.hpp"

namespace treering {

/// What TREERING_DEVICE asks for.
enum class DeviceChoice : std::uint8_t { automatic, cuda, host, simt };

/// One field per variable. The defaults stand in the table, so a Settings is made by
/// parse_settings() alone.
struct Settings {
  DeviceChoice device;
  int host_threads;  ///< 0: automatic
  std::size_t arena, inbox;
  std::size_t slot;  ///< 0: by plan
  int blocks;        ///< 0: by plan
  std::optional<Algorithm> algorithm;
  std::optional<WireType> wire;
  std::string choice;  ///< what is forced of choices: plan/choice_rules.hpp reads it
  bool deterministic;
  std::chrono::milliseconds start_timeout;
  std::optional<int> rank, size;  ///< of a job that was started by hand
  std::string id;                 ///< what names that job; empty: by the launcher
  LogLevel log;
  std::uint64_t simt_seed;
  int simt_threads;
  std::chrono::milliseconds simt_patience;
};

/// This process's settings, read from the environment at the first call, which also sets the level
/// of the log and warns of unknown TREERING_ variables. Thread-safe. Throws Error{invalid_setting}
/// for as long as a variable's value is not understood.
const Settings& settings();

/// Names and values of variables; other programs' are ignored, and an empty value is as good as
/// none.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// Throws Error{invalid_setting} that names the variable, its value and the valid ones.
Settings parse_settings(const Environment&);

/// A warning for each TREERING_ variable that does not exist, with the names that are most like it.
std::vector<std::string> unknown_settings(const Environment&);

/// The table, as in docs/environment.md.
std::string settings_markdown();

}  // namespace treering
