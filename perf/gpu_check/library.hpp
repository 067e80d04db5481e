#pragma once

// The probes that call the library, the same on every device.

#include <functional>
#include <memory>
#include <span>

#include "perf/gpu_check/probe.hpp"
#include "treering/treering.hpp"

namespace treering::gpu_check {

Probes matrix_probes();
Probes message_probes();
Probes sanitizer_probes();
Probes rank_process_probes();
Probes graph_probes();
Probes abort_probes();
Probes time_probes();
std::vector<Helper> rank_helpers();

/// Work on some streams that is recorded once, then replayed: a CUDA graph. On the host, the calls
/// made again.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  ///< asynchronous, in the order of the first stream
};
std::unique_ptr<Recording> record(std::span<Stream> streams, const std::function<void()>& calls);
/// The same, on a GPU.
std::unique_ptr<Recording> record_graph(std::span<Stream>, const std::function<void()>& calls);

}  // namespace treering::gpu_check
