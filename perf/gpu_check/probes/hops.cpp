// Question 4: what does a flag's way from one block to another cost? By how it is raised, how it is
// polled, where it lies, and in which memory sync domain.

#include "perf/gpu_check/probes/hops.hpp"

namespace treering::gpu_check {
namespace {

constexpr std::uint64_t hop_rounds = 50 * effort;

template <Raise how, Look look>
double hop_ns(Rig& rig, std::uint64_t* words, bool remote_domain) {
  std::uint64_t* const nanos = rig.host_words(1);
  Lane lane = rig.lane();
  const PingPong<how, look> task{words, words + line_words, nanos, 0, hop_rounds, second_ns};
  rig.launch(lane, {.blocks = 2, .cooperative = true, .remote_domain = remote_domain}, task);
  if (!rig.wait(lane, 5)) throw std::runtime_error("ping-pong outlived its own time-out");
  return static_cast<double>(load_acquire(*nanos)) / (2.0 * hop_rounds);
}

template <Raise how, Look look>
void measure(Rig& rig, Findings& findings, const char* way) {
  for (const bool host : {false, true})
    for (const bool remote : {false, true}) {
      if (remote && !rig.has_domains()) continue;
      std::uint64_t* const words =
          host ? rig.host_words(2 * line_words) : rig.device_words(2 * line_words);
      const double nanos = hop_ns<how, look>(rig, words, remote);
      const std::string name = join(way, "_", host ? "host" : "device", "_",
                                    remote ? "remote" : "default", "_domain_hop_ns");
      if (nanos == 0) findings.fail(name + ": the blocks lost each other");
      findings.number(name, nanos);
    }
}

void one_device(Findings& findings) {
  Rig rig;
  measure<Raise::release, Look::relaxed>(rig, findings, "release_relaxed");
  measure<Raise::release, Look::acquire>(rig, findings, "release_acquire");
  measure<Raise::fence, Look::relaxed>(rig, findings, "fence_relaxed");
  measure<Raise::fence, Look::acquire>(rig, findings, "fence_acquire");
}

/// Each polls a word in its own memory, which the other raises.
double between(int here, int there) {
  Rig mine(here), theirs(there);
  if (!mine.reach(theirs) || !theirs.reach(mine)) return 0;
  std::uint64_t *const near = mine.device_words(line_words),
                       *const far = theirs.device_words(line_words),
                       *const nanos = mine.host_words(2 * line_words);
  using Task = PingPong<Raise::release, Look::relaxed>;
  Lane first = mine.lane(), second = theirs.lane();
  mine.load<Task>();
  theirs.load<Task>();
  theirs.launch(second, {}, Task{far, near, nanos + line_words, 1, hop_rounds, second_ns});
  mine.launch(first, {}, Task{far, near, nanos, 0, hop_rounds, second_ns});
  if (!mine.wait(first, 5) || !theirs.wait(second, 5))
    throw std::runtime_error("ping-pong outlived its own time-out");
  return static_cast<double>(load_acquire(*nanos)) / (2.0 * hop_rounds);
}

void hops_between_gpus(Findings& findings) {
  const int gpus = machines(Place{});
  if (gpus < 2) return findings.skip("there is one GPU");
  for (int a = 0; a < gpus; ++a)
    for (int b = a + 1; b < gpus; ++b)
      findings.number(join("gpu_", a, "_gpu_", b, "_hop_ns"), between(a, b));
}

}  // namespace

Probes hop_probes(Place) {
  return {{.name = "hops.one_device",
           .question = "what a flag's way between two blocks costs",
           .seconds = 25,
           .run = one_device,
           .each_gpu = true},
          {.name = "hops.peers",
           .question = "the same between two GPUs",
           .seconds = 30,
           .run = hops_between_gpus}};
}

}  // namespace treering::gpu_check
