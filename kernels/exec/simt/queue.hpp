#pragma once

// Queues and events of the `simt` execution; engine.hpp tells when what is in them runs. Besides
// what every device has, these queues run any callable as a kernel: blocks of threads that meet at
// barriers, without a communicator.
//
//     SimtQueue queue;
//     queue.launch([&](SimtGroup& group) { group.sync(); … }, {.blocks = 2, .threads = 64});
//     queue.synchronize();

#include <memory>

#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "kernels/exec/simt/group.hpp"

namespace treering {

class SimtEvent final : public Event {
 public:
  bool done() override;
  /// Throws Error{stuck} if a kernel before the latest record was stuck.
  void synchronize() override;

 private:
  friend class SimtQueue;
  std::shared_ptr<simt::Record> record_;  // the latest; null: never recorded
};

class SimtQueue final : public Queue {
 public:
  SimtQueue();
  /// Waits until the queue is idle. An error that nobody has waited for is lost.
  ~SimtQueue() override;
  SimtQueue(const SimtQueue&) = delete;
  SimtQueue& operator=(const SimtQueue&) = delete;

  /// Throws Error{invalid_argument} for a shape that cannot be.
  void launch(simt::Kernel, const simt::Shape&);
  void launch(const Launch&) override;
  /// See Device::launch_together(). Throws Error{invalid_argument} if there are too few slots.
  static void launch_together(std::span<Queue* const>, std::span<const Launch>);
  /// The catalog's kernels are on the device from the start.
  static void preload_catalog();
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void record(Event&) override;
  void wait(Event&) override;
  bool idle() override;
  /// Throws Error{stuck} if a kernel was stuck since the last call.
  void synchronize() override;

 private:
  simt::QueueState state_;
};

}  // namespace treering
