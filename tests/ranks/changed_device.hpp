#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/exec/device.hpp"

namespace treering::test {

/// The host device, to be changed.
class ChangedDevice : public Device {
 public:
  Execution execution() const override { return host_.execution(); }
  std::string describe() const override { return host_.describe(); }
  std::string identity() const override { return host_.identity(); }
  void* allocate(std::size_t bytes) override { return host_.allocate(bytes); }
  void deallocate(void* memory) noexcept override { host_.deallocate(memory); }
  void* reserve(std::size_t bytes) override { return host_.reserve(bytes); }
  void back(void* part, std::size_t bytes) override { host_.back(part, bytes); }
  void* allocate_control(std::size_t bytes) override { return host_.allocate_control(bytes); }
  void deallocate_control(void* memory) noexcept override { host_.deallocate_control(memory); }
  void copy_now(void* to, const void* from, std::size_t bytes) override {
    host_.copy_now(to, from, bytes);
  }
  bool export_memory(const void* pointer, MemoryHandle& handle, std::size_t& offset) override {
    return host_.export_memory(pointer, handle, offset);
  }
  std::unique_ptr<Mapping> import_memory(const MemoryHandle& handle) override {
    return host_.import_memory(handle);
  }
  std::unique_ptr<Queue> create_queue() override { return host_.create_queue(); }
  std::unique_ptr<Event> create_event() override { return host_.create_event(); }
  void run(const Launch& launch) override { host_.run(launch); }
  void launch_together(std::span<Queue* const> queues, std::span<const Launch> launches) override {
    host_.launch_together(queues, launches);
  }
  int blocks(int wanted, int ranks) const override { return host_.blocks(wanted, ranks); }
  int most_ranks() const override { return host_.most_ranks(); }

 private:
  Device& host_ = device();
};

}  // namespace treering::test
