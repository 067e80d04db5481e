#pragma once

// Streams and events. Waits poll, they never enter one of CUDA's blocking calls: those do not come
// back from a kernel that is stuck, and a launched kernel need not even start while no call is
// made.

#include <cuda_runtime_api.h>

#include <mutex>
#include <span>
#include <vector>

#include "kernels/exec/device.hpp"

namespace treering {

/// What launching depends on, of one GPU.
struct LaunchTraits {
  int device;          ///< CUDA's number in this process
  bool cooperative;    ///< a grid can be promised that all its blocks run at the same time
  bool remote_domain;  ///< kernels need not wait for unrelated stores (memory sync domains)
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(int device);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() override;

  bool done() override;
  void synchronize() override;
  cudaEvent_t native() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// What a queue consists of: a stream that does not wait for the legacy default stream, nor that
/// one for it, and an event by which other queues wait for it.
struct Lane {
  cudaStream_t stream;
  cudaEvent_t joint;
};

/// Lanes made in advance: making one may wait until all running kernels have ended, and they may be
/// waiting for the kernel that the new lane is for. Thread-safe; outlives its queues.
class LanePool {
 public:
  LanePool(int device, int lanes);
  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;
  ~LanePool();

  /// An idle lane; a new one if there is none.
  Lane take();
  void give_back(Lane) noexcept;

 private:
  Lane make() const;

  int device_;
  std::mutex mutex_;
  std::vector<Lane> idle_;
};

class CudaQueue final : public Queue {
 public:
  CudaQueue(const LaunchTraits&, LanePool&);
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;
  /// Waits ten seconds for what the queue holds. A kernel that is stuck for longer keeps its lane,
  /// for good, and a warning says so.
  ~CudaQueue() override;

  void launch(const Launch&) override;
  /// Host memory that is not pinned makes the call wait for the copy.
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void record(Event&) override;
  void wait(Event&) override;
  bool idle() override;
  void synchronize() override;
  void* native() override { return lane_.stream; }

  /// Launches, as one grid, a team of ranks that run the same kernel with as many blocks each.
  void launch_team(std::span<const Launch> team);
  /// Work that follows in this queue waits for all that `other` holds now.
  void join(CudaQueue& other);
  void zero(void* memory, std::size_t bytes);

 private:
  LaunchTraits traits_;
  LanePool& pool_;
  Lane lane_;
};

/// Device::launch_together(): neighbours with the same kernel and number of blocks go into one
/// cooperative grid, in the first one's queue, which waits for the others' earlier work; the others
/// wait for the grid.
void launch_teams(std::span<Queue* const> queues, std::span<const Launch> launches);

}  // namespace treering
