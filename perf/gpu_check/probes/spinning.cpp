// Question 3: which calls wait until a running kernel has ended? Those must never be made while
// another rank's kernel waits for this one.

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

void ask(const Action& action, Findings& findings) {
  Rig rig;
  const std::function<void()> act = action.prepare(rig);
  Spinner spinner(rig, rig.lane(), 10 * patience_seconds);
  if (!spinner.await_start(5)) return findings.fail("the spinning kernel did not start");
  const std::uint64_t begin = Spinner::now();
  act();
  const std::uint64_t end = Spinner::now();
  const bool blocked = spinner.ended();
  spinner.stop();
  findings.flag("waits_for_running_kernels", blocked);
  findings.number("call_us", static_cast<double>(end - begin) / 1e3);
  if (!spinner.wait(5)) findings.fail("the spinning kernel outlived its own time-out");
}

}  // namespace

Probes spinning_probes(Place) {
  Probes all;
  for (const Action& action : actions())
    all.push_back({.name = "spinning." + action.name,
                   .question = "does the call return while a kernel runs",
                   .seconds = 15,
                   .run = [action](Findings& findings) { ask(action, findings); },
                   .environment = action.environment});
  return all;
}

}  // namespace treering::gpu_check
