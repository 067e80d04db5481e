#pragma once

// Asks the probes, one after the other, each in a process of its own.

#include "perf/gpu_check/answer.hpp"
#include "perf/gpu_check/options.hpp"
#include "perf/gpu_check/probe.hpp"

namespace treering::gpu_check {

/// What this machine offers: found out by a probe too, since the driver itself may hang.
Probe machine_probe();

/// All probes of a place, in the order in which they are asked.
Probes all_probes(bool host);

/// Probes that misbehave, for tests.
Probes self_test_probes();

/// The whole run: answers to standard output and into the folder. Returns the exit status: 0, or 1
/// if something failed or hung. Throws Error{invalid_argument} for names that no probe has,
/// Error{system} if results cannot be written.
int run(const Options&, const std::string& version);

/// The names and questions, for people.
void list(bool host);

}  // namespace treering::gpu_check
