// A rank waits for one that never comes, and is aborted; afterwards the device is as good as new.

#include <chrono>
#include <thread>

#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/library/team.hpp"

namespace treering::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

Case small_call(const Kernel& kernel) {
  return {.kernel = kernel,
          .pattern = {kernel.collective, DataType::f32, ReduceOp::sum, 2, 100, 1}};
}

void abort(Findings& findings) {
  Team team(2, 4096);
  RankMemory memory(4096);
  memory.prepare(small_call(catalog[0]), 0);
  memory.call(team[0], {.stream = team.streams().data()});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it waits by now, or will
  const auto begin = Clock::now();
  team[0].abort();
  try {
    team.streams()[0].synchronize();
    findings.fail("a call without its peer has succeeded");
  } catch (const Error& error) {
    findings.text("error", error.what());
    if (error.code() != ErrorCode::aborted) findings.fail("the error is not `aborted`");
  }
  findings.number("abort_us",
                  std::chrono::duration<double, std::micro>(Clock::now() - begin).count());

  Team next(2, 4096);
  if (const std::string faults = next.check(small_call(catalog[0])); !faults.empty())
    findings.fail("afterwards: " + faults);
}

}  // namespace

Probes abort_probes() {
  return {{.name = "stuck.aborted_call",
           .question = "how long an aborted call takes to end, and what comes after it",
           .seconds = 30,
           .run = abort}};
}

}  // namespace treering::gpu_check
