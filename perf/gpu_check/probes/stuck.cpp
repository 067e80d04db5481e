// Question 7: how long does a kernel that is told to stop by a word in host memory go on, and is
// the device good afterwards?

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

void abort_word(Findings& findings) {
  Rig rig;
  Spinner spinner(rig, rig.lane(), 10);
  if (!spinner.await_start(5)) return findings.fail("the spinning kernel did not start");
  const std::uint64_t begin = Spinner::now();
  spinner.stop();
  if (!spinner.wait(5)) return findings.fail("the kernel did not see the word within 5 s");
  findings.number("abort_us", static_cast<double>(Spinner::now() - begin) / 1e3);

  Spinner next(rig, rig.lane(), 10);
  const bool runs = next.await_start(5);
  next.stop();
  if (!runs || !next.wait(5)) findings.fail("the next kernel did not run");
}

}  // namespace

Probes stuck_probes(Place) {
  return {{.name = "stuck.abort_word",
           .question = "how long a stuck kernel takes to see the abort word",
           .seconds = 25,
           .run = abort_word}};
}

}  // namespace treering::gpu_check
