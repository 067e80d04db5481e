// Question 9, second half: times of whole calls, ranks on one device in one grid, against what
// copying reaches.
//
// Ranks on one GPU share its memory, so what bounds a call is the bytes that all ranks together
// must read and write: `traffic` times the size. of_ceiling = traffic × algbw / (read and written
// bytes of a copy). Sizes that fit the L2 cache can exceed 1.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "base/units.hpp"
#include "perf/bench/cases.hpp"
#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/library/team.hpp"

namespace treering::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

/// Read and written bytes of all ranks, per byte of the larger buffer of one: everybody's input is
/// read and everybody's output written at least once.
double traffic(const Pattern& p) {
  std::size_t all = 0;
  for (int r = 0; r < p.ranks; ++r) all += input_elements(p, r) + output_elements(p, r);
  return static_cast<double>(all) / static_cast<double>(most_elements(p));
}

double ceiling_gbps() {
  const char* copied = std::getenv("GPU_CHECK_CEILING");
  return copied == nullptr ? 0 : 2 * std::atof(copied);
}

/// Seconds of one call, of some that are queued back to back.
double seconds_of(Team& team, int calls) {
  for (int i = 0; i < 3; ++i) team.launch();
  team.synchronize();
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) team.launch();
  team.synchronize();
  return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
}

/// Calls enough to be timed; on the host few, since ranks outnumber cores there.
int calls_for(std::size_t bytes) {
  if (usable_gpus() == 0) return 2;
  return bytes < (std::size_t{1} << 20) ? 100 : 20;
}

void time(Team& team, const perf::Case& what, Findings& findings) {
  const Pattern p = perf::timed_pattern(what, team.size());
  team.prepare({.kernel = {}, .pattern = p});
  const double seconds = seconds_of(team, calls_for(what.bytes));
  if (const std::string faults = team.faults(); !faults.empty()) findings.fail(faults);

  const double gbps = perf::bandwidth(what.bytes, seconds);
  const std::string call = fmt::format("{}_{}", name(what.collective), format_size(what.bytes));
  findings.number(call + "_us", seconds * 1e6);
  if (what.bytes == 0) return;
  findings.number(call + "_algbw_gbps", gbps);
  findings.number(call + "_busbw_gbps", gbps * perf::bus_factor(what.collective, team.size()));
  if (const double ceiling = ceiling_gbps(); ceiling > 0)
    findings.number(call + "_of_ceiling", traffic(p) * gbps / ceiling);
}

void times(int ranks, Findings& findings) {
  const bool is_gpu = usable_gpus() > 0;
  perf::Options what;
  what.ranks = ranks;
  what.min_bytes = 1024;
  what.max_bytes = is_gpu ? std::size_t{64} << 20 : std::size_t{256} << 10;
  what.step_factor = 16;
  what.types = {DataType::f32};
  what.ops = {ReduceOp::sum};
  for (const Kernel& kernel : collective_kernels)
    if (what.collectives.empty() || what.collectives.back() != kernel.collective)
      what.collectives.push_back(kernel.collective);
  Team team(ranks, what.max_bytes);
  for (const perf::Case& one : perf::make_cases(what)) time(team, one, findings);
}

}  // namespace

Probes time_probes() {
  Probes all;
  for (const int ranks : {2, 4, 8})
    all.push_back({.name = fmt::format("times.{}", ranks),
                   .question = "times of calls, and what they reach of the ceiling",
                   .seconds = 30,
                   .run = [ranks](Findings& findings) { times(ranks, findings); }});
  for (const int blocks : {1, 4, 16})
    all.push_back({.name = fmt::format("times.blocks_{}", blocks),
                   .question = "the same among 4 ranks, with so many blocks each",
                   .seconds = 30,
                   .run = [](Findings& findings) { times(4, findings); },
                   .environment = {fmt::format("TREERING_BLOCKS={}", blocks)},
                   .quick = false});
  return all;
}

}  // namespace treering::gpu_check
