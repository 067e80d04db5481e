// In place of cuda/ in a build without CUDA: no GPU is ever found, so nothing below is asked.

#include "perf/gpu_check/library.hpp"

namespace treering::gpu_check {

int machines(OnGpu) { return 0; }
void use_gpu(int /*number*/) {}
Probes facts_probes(OnGpu) { return {}; }
Probes copy_probes(OnGpu) { return {}; }
Probes residency_probes(OnGpu) { return {}; }
Probes spinning_probes(OnGpu) { return {}; }
Probes hop_probes(OnGpu) { return {}; }
Probes litmus_probes(OnGpu) { return {}; }
Probes process_probes(OnGpu) { return {}; }
Probes stuck_probes(OnGpu) { return {}; }
Probes queue_probes(OnGpu) { return {}; }
std::vector<Helper> process_helpers(OnGpu) { return {}; }
std::unique_ptr<Recording> record_graph(std::span<Stream> /*streams*/,
                                        const std::function<void()>& /*calls*/) {
  return nullptr;
}

}  // namespace treering::gpu_check
