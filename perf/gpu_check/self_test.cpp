// Probes that misbehave: by them tests see that the program outlives every probe. They are in the
// list if GPU_CHECK_SELF_TEST is set.

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "perf/gpu_check/runner.hpp"
#include "perf/gpu_check/second.hpp"

namespace treering::gpu_check {
namespace {

Probe probe(const char* name, void (*run)(Findings&), int seconds = 20) {
  return {.name = std::string("self_test.") + name,
          .question = "does the program outlive this",
          .seconds = seconds,
          .run = run};
}

void hang(Findings& findings) {
  std::signal(SIGTERM, SIG_IGN);
  findings.text("before", "said in time");
  for (;;) pause();
}

void crash(Findings& findings) {
  findings.number("before", 1);
  std::raise(SIGSEGV);
}

void leave(Findings& findings) {
  findings.number("before", 2);
  _exit(7);
}

void orphan(Findings& findings) { findings.number("pid", start({"setsid", "sleep", "1000"})); }

void flood(Findings& findings) {
  for (int i = 0; i < 20'000; ++i) findings.number("number " + std::to_string(i), i);
}

}  // namespace

Probes self_test_probes() {
  Probes all{probe("hang", hang, 1),
             probe("crash", crash),
             probe("leave", leave),
             probe("throw", [](Findings&) { throw std::runtime_error("thrown \"here\"\xff"); }),
             probe("fail",
                   [](Findings& findings) {
                     findings.fail("first");
                     findings.fail("second");
                   }),
             probe("skip", [](Findings& findings) { findings.skip("no reason"); }),
             probe("orphan", orphan),
             probe("flood", flood),
             probe("environment", [](Findings& findings) {
               for (const char* name : {"GPU_CHECK_VARIABLE", "CUDA_VISIBLE_DEVICES"})
                 if (const char* value = std::getenv(name)) findings.text(name, value);
             })};
  all.back().environment = {"GPU_CHECK_VARIABLE=given"};
  all.back().each_gpu = true;
  return all;
}

}  // namespace treering::gpu_check
