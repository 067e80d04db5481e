// Calls captured in a CUDA graph and replayed, with other data each time.

#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/library/team.hpp"

namespace treering::gpu_check {
namespace {

constexpr int replays = 100;
constexpr std::size_t count = 1000;

/// The host has no graphs: the calls are made again.
class Repeated final : public Recording {
 public:
  explicit Repeated(std::function<void()> calls) : calls_(std::move(calls)) {}
  void replay() override { calls_(); }

 private:
  std::function<void()> calls_;
};

std::string replay(Team& team, const Kernel& kernel) {
  Case one{.kernel = kernel,
           .pattern = {kernel.collective, DataType::f32, ReduceOp::sum, team.size(), count, 1}};
  std::string faults = team.check(one);  // what a first call sets up is set up now
  team.prepare(one);
  const auto recording = record(team.streams(), [&] { team.launch(); });
  for (int i = 0; i < replays && faults.empty(); ++i) {
    ++one.pattern.seed;
    team.prepare(one);
    recording->replay();
    team.synchronize();
    faults = team.faults();
  }
  return faults;
}

void check_kernel(const Kernel& kernel, int ranks, Findings& findings) {
  Team team(ranks, count * sizeof(float) * static_cast<std::size_t>(ranks));
  if (const std::string faults = replay(team, kernel); !faults.empty()) findings.fail(faults);
  // The communicator is as good as before.
  const Case after{.kernel = kernel,
                   .pattern = {kernel.collective, DataType::i32, ReduceOp::max, ranks, count, 7}};
  if (const std::string faults = team.check(after); !faults.empty())
    findings.fail("after the replays: " + faults);
  findings.number("replays", replays);
}

}  // namespace

std::unique_ptr<Recording> record(std::span<Stream> streams, const std::function<void()>& calls) {
  if (streams[0].native() != nullptr) return record_graph(streams, calls);
  return std::make_unique<Repeated>(calls);
}

Probes graph_probes() {
  Probes all;
  for (const Kernel& kernel : collective_kernels)
    all.push_back({.name = "graph." + name(kernel),
                   .question = "is the kernel exact in a graph that is replayed with other data",
                   .seconds = 20,
                   .run = [kernel](Findings& findings) { check_kernel(kernel, 2, findings); }});
  return all;
}

}  // namespace treering::gpu_check
