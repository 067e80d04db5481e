// Question 8: how many launches wait in a stream before the launching thread has to; do graphs
// replay often, with counters that go past 32 bits?

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

struct Count {
  std::uint64_t* counter;
  TREERING_DEVICE void operator()(At at) const {
    if (at.leader()) store_relaxed(*counter, load_relaxed(*counter) + 1);
  }
};

void launch_depth(Findings& findings) {
  constexpr int most = 40 * static_cast<int>(effort);
  constexpr double long_ns = 50e6;
  Rig rig;
  std::uint64_t* const counter = rig.device_words(1);
  rig.load<Count>();
  Spinner spinner(rig, rig.lane(), 10 * patience_seconds);
  if (!spinner.await_start(5)) return findings.fail("the spinning kernel did not start");
  int pending = 0;
  for (double took = 0; pending < most && took < long_ns && !spinner.ended(); ++pending) {
    const std::uint64_t begin = Spinner::now();
    rig.launch(spinner.lane(), {}, Count{counter});
    took = static_cast<double>(Spinner::now() - begin);
  }
  const bool blocked = pending < most;  // the last one
  findings.flag("blocked", blocked);
  findings.number("pending_launches", blocked ? pending - 1 : pending);
  spinner.stop();
  if (!spinner.wait(10)) findings.fail("the pending kernels did not end");
}

void replay(Findings& findings) {
  constexpr std::uint64_t start = (std::uint64_t{1} << 32) - 10 * effort, replays = 1000 * effort;
  Rig rig;
  std::uint64_t* const counter = rig.device_words(1);
  std::uint64_t* const seen = rig.host_words(2);
  store_release(seen[0], start);
  Lane lane = rig.lane();
  rig.copy(lane, counter, &seen[0], sizeof start);
  if (!rig.wait(lane, 5)) return findings.fail("a copy of eight bytes did not end");
  const Graph graph = rig.capture({&lane, 1}, [&] { rig.launch(lane, {}, Count{counter}); });
  const std::uint64_t begin = Spinner::now();
  for (std::uint64_t i = 0; i < replays; ++i) graph.replay(lane);
  if (!rig.wait(lane, 15)) return findings.fail("the replays did not end");
  findings.number("replay_us",
                  static_cast<double>(Spinner::now() - begin) / 1e3 / static_cast<double>(replays));
  rig.copy(lane, &seen[1], counter, sizeof start);
  if (!rig.wait(lane, 5)) return findings.fail("a copy of eight bytes did not end");
  findings.number("replays", static_cast<double>(replays));
  if (load_acquire(seen[1]) != start + replays) findings.fail("the counter is not exact");
}

}  // namespace

Probes queue_probes(Place) {
  return {{.name = "queues.launch_depth",
           .question = "how many launches may be pending in a stream",
           .seconds = 20,
           .run = launch_depth},
          {.name = "queues.graph_replay",
           .question = "are many replays of a graph exact, with counters past 2^32",
           .seconds = 30,
           .run = replay}};
}

}  // namespace treering::gpu_check
