// Question 9, first half: the ceiling. What copying reaches: within a GPU by the driver and by
// kernels of various shapes, in and out of the L2 cache; to and from the host; between GPUs. As in
// perf, GB/s count the bytes copied: memory sees twice as many.

#include <algorithm>

#include "perf/gpu_check/probes/waiting.hpp"

namespace treering::gpu_check {
namespace {

template <int unroll>
struct Copy {
  Pack* to;
  const Pack* from;
  std::size_t packs;

  TREERING_DEVICE void operator()(At at) const {
    const auto all = static_cast<std::size_t>(at.blocks) * at.threads;
    std::size_t i = static_cast<std::size_t>(at.block) * at.threads + at.thread;
    for (; i + (unroll - 1) * all < packs; i += unroll * all) {
      Pack held[unroll];
      TREERING_UNROLL
      for (int u = 0; u < unroll; ++u) held[u] = from[i + u * all];
      TREERING_UNROLL
      for (int u = 0; u < unroll; ++u) to[i + u * all] = held[u];
    }
    for (; i < packs; i += all) to[i] = from[i];
  }
};

/// The best of some rounds, each long enough to be timed by the host.
template <class Work>
double best_gbps(Rig& rig, Lane& lane, std::size_t bytes, int wanted, Work work) {
  constexpr int rounds = effort < 100 ? 1 : 5;
  const int repeats = std::max(wanted * static_cast<int>(effort) / 100, 1);
  double best = 0;
  for (int round = 0; round <= rounds; ++round) {
    const std::uint64_t begin = Spinner::now();
    for (int i = 0; i < repeats; ++i) work();
    if (!rig.wait(lane, 10)) throw std::runtime_error("a copy did not end");
    const auto nanos = static_cast<double>(Spinner::now() - begin);
    const double gbps = static_cast<double>(bytes) * repeats / nanos;
    if (round > 0) best = std::max(best, gbps);
  }
  return best;
}

double copy_gbps(Rig& rig, void* to, const void* from, std::size_t bytes, int repeats) {
  Lane lane = rig.lane();
  return best_gbps(rig, lane, bytes, repeats, [&] { rig.copy(lane, to, from, bytes); });
}

void ceiling(Findings& findings) {
  Rig rig;
  const std::size_t large = rig.big_bytes(), small = rig.cache_bytes() / 4;
  std::byte *const from = rig.device_bytes(large), *const to = rig.device_bytes(large);
  const double copied = copy_gbps(rig, to, from, large, 4);
  findings.number("copied_gbps", copied);
  findings.number("read_and_written_gbps", 2 * copied);
  findings.number("copied_in_l2_gbps", copy_gbps(rig, to, from, small, 50));
}

template <int unroll>
void kernel(Rig& rig, Findings& findings, std::byte* to, const std::byte* from) {
  const int units = std::max(rig.resident<Copy<unroll>>(1024), 2);
  for (const bool in_cache : {false, true})
    for (const int threads : {256, 512, 1024})
      for (const int blocks : {units / 8, units / 2, units, 2 * units}) {
        if (blocks == 0) continue;
        const std::size_t bytes = in_cache ? rig.cache_bytes() / 4 : rig.big_bytes() / 4;
        Lane lane = rig.lane();
        const Copy<unroll> task{reinterpret_cast<Pack*>(to), reinterpret_cast<const Pack*>(from),
                                bytes / sizeof(Pack)};
        const Shape shape{.blocks = blocks, .threads = threads};
        const double gbps =
            best_gbps(rig, lane, bytes, in_cache ? 20 : 4, [&] { rig.launch(lane, shape, task); });
        findings.number(join(blocks, "_blocks_", threads, "_threads_", unroll, "_loads_",
                             in_cache ? "l2" : "memory", "_gbps"),
                        gbps);
      }
}

void kernels(Findings& findings) {
  Rig rig;
  std::byte *const from = rig.device_bytes(rig.big_bytes() / 4), *const to = rig.device_bytes(
                                                                     rig.big_bytes() / 4);
  kernel<1>(rig, findings, to, from);
  kernel<4>(rig, findings, to, from);
}

void host(Findings& findings) {
  Rig rig;
  const std::size_t bytes = rig.big_bytes() / 8;
  std::byte *const there = rig.device_bytes(bytes), *const pinned = rig.pinned_bytes(bytes),
                   *const pageable = rig.pageable_bytes(bytes);
  findings.number("pinned_to_device_gbps", copy_gbps(rig, there, pinned, bytes, 2));
  findings.number("device_to_pinned_gbps", copy_gbps(rig, pinned, there, bytes, 2));
  findings.number("pageable_to_device_gbps", copy_gbps(rig, there, pageable, bytes, 1));
  findings.number("device_to_pageable_gbps", copy_gbps(rig, pageable, there, bytes, 1));
}

void copies_between_gpus(Findings& findings) {
  const int gpus = machines(Place{});
  if (gpus < 2) return findings.skip("there is one GPU");
  for (int a = 0; a < gpus; ++a)
    for (int b = 0; b < gpus; ++b) {
      if (a == b) continue;
      Rig from(a), to(b);
      findings.flag(join("gpu_", a, "_to_", b, "_direct"), from.reach(to));
      const std::size_t bytes = from.big_bytes() / 4;
      findings.number(join("gpu_", a, "_to_", b, "_gbps"),
                      copy_gbps(from, to.device_bytes(bytes), from.device_bytes(bytes), bytes, 2));
    }
}

}  // namespace

Probes copy_probes(Place) {
  return {{.name = "copies.ceiling",
           .question = "the ceiling: what the driver's copy within a GPU reaches",
           .seconds = 20,
           .run = ceiling,
           .each_gpu = true},
          {.name = "copies.peers",
           .question = "what a copy between two GPUs reaches",
           .seconds = 60,
           .run = copies_between_gpus},
          {.name = "copies.host",
           .question = "what copies between host and GPU reach",
           .seconds = 20,
           .run = host},
          {.name = "copies.kernels",
           .question = "what copying kernels reach, by blocks, threads and loads in flight",
           .seconds = 20,
           .run = kernels,
           .quick = false}};
}

}  // namespace treering::gpu_check
