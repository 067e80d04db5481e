// Question 10: is every kernel right? Each kernel of the catalog, among 2, 4 and 8 ranks on one
// device, with types, operators and sizes sampled, in and out of place, registered or not.

#include <fmt/format.h>

#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/library/team.hpp"

namespace treering::gpu_check {
namespace {

/// Nothing, one, less than a pack, more than a block of threads, and several messages a wire.
constexpr std::size_t counts[] = {0, 1, 7, 1000, 4099, 40'007};
constexpr std::size_t small_counts[] = {1, 7, 1000};

struct Sample {
  std::span<const std::size_t> counts;
  Launching launching = Launching::together;
  int types = data_types;  ///< as many of them
};

/// Every type, with operators, sizes and placements that go round.
std::vector<Case> cases_of(const Kernel& kernel, int ranks, const Sample& sample) {
  std::vector<Case> cases;
  for (int i = 0; i < sample.types; ++i) {
    const auto type = static_cast<DataType>(i * data_types / sample.types);
    for (const std::size_t count : sample.counts) {
      const auto number = cases.size();
      const auto next = static_cast<ReduceOp>(number % reduce_ops);
      const ReduceOp op = applies(next, type) ? next : ReduceOp::max;
      cases.push_back({.kernel = kernel,
                       .pattern = {kernel.collective, type, op, ranks, count, number + 1,
                                   static_cast<int>(number) % ranks},
                       .in_place = number % 2 == 1,
                       .registered = number / 2 % 2 == 0,
                       .shift = number % 3 * size_of(type)});
    }
  }
  return cases;
}

std::size_t most_bytes(int ranks) {
  return counts[std::size(counts) - 1] * sizeof(double) * static_cast<std::size_t>(ranks);
}

void check_kernel(Team& team, const Kernel& kernel, const Sample& sample, Findings& findings) {
  const std::vector<Case> cases = cases_of(kernel, team.size(), sample);
  for (const Case& one : cases)
    if (const std::string faults = team.check(one, sample.launching); !faults.empty())
      findings.fail(faults);
  findings.number(name(kernel) + "_checked", static_cast<double>(cases.size()));
}

void check_catalog(int ranks, const Sample& sample, Findings& findings) {
  Team team(ranks, most_bytes(ranks));
  for (const Kernel& kernel : collective_kernels) check_kernel(team, kernel, sample, findings);
}

Probe tool_probe(const char* tool, int seconds) {
  return {.name = std::string("sanitizer.") + tool,
          .question = fmt::format("what compute-sanitizer's {} says of every kernel", tool),
          .seconds = seconds,
          .run =
              [](Findings& findings) {
                check_catalog(2, {.counts = small_counts, .types = 2}, findings);
              },
          .tool = tool,
          .quick = false};
}

}  // namespace

Probes matrix_probes() {
  Probes all;
  for (const int ranks : {2, 4, 8})
    for (const Kernel& kernel : collective_kernels)
      all.push_back({.name = fmt::format("matrix.{}.{}", ranks, name(kernel)),
                     .question = "is the kernel exact among ranks in one grid",
                     .seconds = 20,
                     .run = [ranks, kernel](Findings& findings) {
                       Team team(ranks, most_bytes(ranks));
                       check_kernel(team, kernel, {.counts = counts}, findings);
                     }});
  for (const int ranks : {2, 4, 8})
    all.push_back({.name = fmt::format("matrix.threads.{}", ranks),
                   .question = "are all kernels exact, each rank launched by its own thread",
                   .seconds = 30,
                   .run =
                       [ranks](Findings& findings) {
                         check_catalog(
                             ranks,
                             {.counts = small_counts, .launching = Launching::threads, .types = 2},
                             findings);
                       },
                   .environment = {"CUDA_DEVICE_MAX_CONNECTIONS=32"}});
  return all;
}

Probes sanitizer_probes() { return {tool_probe("memcheck", 60), tool_probe("racecheck", 60)}; }

}  // namespace treering::gpu_check
