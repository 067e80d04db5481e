// Which probes there are, in the order in which they are asked: first what everything else is
// measured by, then whether Treering is right, then what is dangerous.

#include <cstdlib>

#include "base/settings.hpp"
#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/runner.hpp"
#include "treering/error.hpp"

namespace treering::gpu_check {
namespace {

void add(Probes& all, const Probes& more) { all.insert(all.end(), more.begin(), more.end()); }

template <class Place>
Probes probes_of(Place place) {
  Probes all = facts_probes(place);
  add(all, copy_probes(place));
  add(all, matrix_probes());
  add(all, message_probes());
  add(all, graph_probes());
  add(all, time_probes());
  add(all, rank_process_probes());
  add(all, residency_probes(place));
  add(all, hop_probes(place));
  add(all, spinning_probes(place));
  add(all, queue_probes(place));
  add(all, litmus_probes(place));
  add(all, stuck_probes(place));
  add(all, abort_probes());
  add(all, process_probes(place));
  add(all, sanitizer_probes());
  if (std::getenv("GPU_CHECK_SELF_TEST") != nullptr) add(all, self_test_probes());
  return all;
}

}  // namespace

int usable_gpus() {
  const DeviceChoice choice = settings().device;
  if (choice == DeviceChoice::host || choice == DeviceChoice::simt) return 0;
  const int gpus = machines(OnGpu{});
  if (gpus == 0 && choice == DeviceChoice::cuda)
    throw Error(ErrorCode::unsupported,
                "TREERING_DEVICE=cuda, but there is no GPU that this build can use.");
  return gpus;
}

Probe machine_probe() {
  return {.name = "machine",
          .question = "is there a GPU, and how many",
          .seconds = 30,
          .run = [](Findings& findings) { findings.number("gpus", usable_gpus()); }};
}

Probes all_probes(bool host) { return host ? probes_of(OnHost{}) : probes_of(OnGpu{}); }

}  // namespace treering::gpu_check
