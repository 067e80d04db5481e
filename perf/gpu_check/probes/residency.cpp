// Question 2: do kernels that wait for each other run at the same time? By number of hardware
// queues, streams and launches in a row; as one cooperative grid, two of them, branches of a graph.
//
//     stream 0   meet 0  meet 1  …        kernels with the same number meet: each raises a flag,
//     stream 1   meet 0  meet 1  …        and waits, for a while, for those of all streams

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

struct Meet {
  std::uint64_t* flags;  ///< device words, a line each
  std::uint64_t* lost;   ///< raised when one has waited in vain: all later ones leave at once
  std::uint64_t* met;    ///< host words, one each
  int me, of;            ///< of a grid that holds several: its first
  std::uint64_t patience_ns;

  TREERING_DEVICE void operator()(At at) const {
    if (!at.leader()) return;
    const int self = me + at.block;
    const std::uint64_t end = nanoseconds() + patience_ns;
    store_release(flags[self * line_words], 1);
    bool all = true;
    for (int other = 0; other < of && all; ++other)
      all = load_relaxed(*lost) == 0 && wait_for(flags[other * line_words], 1, end);
    if (!all) store_release(*lost, 1);
    store_release(met[self], all ? 1 : 0);
  }
};

constexpr auto patience_ns = static_cast<std::uint64_t>(patience_seconds * 1e9);

/// Meetings of `of` kernels, one after the other.
class Meetings {
 public:
  Meetings(Rig& rig, int of, int count)
      : of_(of),
        count_(count),
        flags_(rig.device_words(static_cast<std::size_t>(of) * static_cast<std::size_t>(count) *
                                line_words)),
        lost_(rig.device_words(1)),
        met_(rig.host_words(static_cast<std::size_t>(of) * static_cast<std::size_t>(count))) {}

  Meet task(int meeting, int me) const {
    const int first = meeting * of_;
    return {flags_ + static_cast<std::size_t>(first) * line_words,
            lost_,
            met_ + first,
            me,
            of_,
            patience_ns};
  }
  bool all_met() const {
    bool all = true;
    for (int i = 0; i < of_ * count_; ++i) all = all && load_acquire(met_[i]) == 1;
    return all;
  }

 private:
  int of_, count_;
  std::uint64_t *flags_, *lost_, *met_;
};

void wait_all(Rig& rig, std::span<Lane> lanes) {
  for (Lane& lane : lanes)
    if (!rig.wait(lane, 10)) throw std::runtime_error("a kernel outlived its own time-out");
}

bool streams_meet(Rig& rig, int streams, int depth, bool breadth_first) {
  Meetings meetings(rig, streams, depth);
  std::vector<Lane> lanes;
  for (int s = 0; s < streams; ++s) lanes.push_back(rig.lane());
  for (int i = 0; i < streams * depth; ++i) {
    const int stream = breadth_first ? i % streams : i / depth;
    const int meeting = breadth_first ? i / streams : i % depth;
    rig.launch(lanes[static_cast<std::size_t>(stream)], {}, meetings.task(meeting, stream));
  }
  wait_all(rig, lanes);
  return meetings.all_met();
}

void streams(Findings& findings) {
  Rig rig;
  for (const int streams : {2, 4, 8})
    for (const int depth : {1, 6})
      for (const bool breadth_first : {true, false}) {
        if (depth == 1 && !breadth_first) continue;
        findings.flag(join(streams, "_streams_", depth, "_deep_",
                           breadth_first ? "breadth" : "depth", "_first_meet"),
                      streams_meet(rig, streams, depth, breadth_first));
      }
}

bool grid_meets(Rig& rig, int blocks) {
  const Meetings meetings(rig, blocks, 1);
  Lane lane = rig.lane();
  rig.launch(lane, {.blocks = blocks, .cooperative = true}, meetings.task(0, 0));
  wait_all(rig, {&lane, 1});
  return meetings.all_met();
}

void one_grid(Findings& findings) {
  Rig rig;
  const int most = rig.resident<Meet>(Shape{}.threads);
  findings.number("blocks_at_once", most);
  for (const int blocks : {2, 8, most})
    if (!grid_meets(rig, blocks))
      findings.fail(join(blocks, " blocks of a cooperative grid did not meet"));
}

/// Two grids of which each meets, or waits for the other.
bool two_grids_meet(Rig& rig, int blocks) {
  const Meetings meetings(rig, 2 * blocks, 1);
  std::vector<Lane> lanes{rig.lane(), rig.lane()};
  for (int grid = 0; grid < 2; ++grid)
    rig.launch(lanes[static_cast<std::size_t>(grid)], {.blocks = blocks, .cooperative = true},
               meetings.task(0, grid * blocks));
  wait_all(rig, lanes);
  return meetings.all_met();
}

void two_grids(Findings& findings) {
  Rig rig;
  const int most = rig.resident<Meet>(Shape{}.threads);
  findings.flag("two_small_cooperative_grids_meet", two_grids_meet(rig, 2));
  findings.flag("two_of_half_the_device_meet", two_grids_meet(rig, most / 2));
  findings.flag("two_that_exceed_the_device_meet", two_grids_meet(rig, most / 2 + 1));
}

void graph_branches(Findings& findings) {
  Rig rig;
  for (const int branches : {2, 4, 8}) {
    const Meetings meetings(rig, branches, 1);
    std::vector<Lane> lanes;
    for (int b = 0; b < branches; ++b) lanes.push_back(rig.lane());
    const Graph graph = rig.capture(lanes, [&] {
      for (int b = 0; b < branches; ++b)
        rig.launch(lanes[static_cast<std::size_t>(b)], {}, meetings.task(0, b));
    });
    graph.replay(lanes[0]);
    wait_all(rig, lanes);
    findings.flag(join(branches, "_branches_meet"), meetings.all_met());
  }
}

}  // namespace

Probes residency_probes(Place) {
  Probes all;
  for (const char* queues : {"", "1", "2", "8", "32"}) {
    Probe probe{.name = join("residency.streams_", *queues != 0 ? queues : "default"),
                .question = "do kernels of several streams run together, by hardware queues",
                .seconds = 25,
                .run = streams};
    if (*queues != 0) probe.environment = {join("CUDA_DEVICE_MAX_CONNECTIONS=", queues)};
    all.push_back(probe);
  }
  all.push_back({.name = "residency.one_cooperative_grid",
                 .question = "does a cooperative grid as large as promised run together",
                 .seconds = 15,
                 .run = one_grid});
  all.push_back({.name = "residency.two_cooperative_grids",
                 .question = "do two cooperative grids run together, small and large",
                 .seconds = 15,
                 .run = two_grids});
  all.push_back({.name = "residency.graph_branches",
                 .question = "do branches of one graph run together",
                 .seconds = 15,
                 .run = graph_branches});
  return all;
}

}  // namespace treering::gpu_check
