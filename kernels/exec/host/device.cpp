#include "kernels/exec/host/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/catalog.hpp"
#include "kernels/exec/host/arena.hpp"
#include "kernels/exec/host/crew.hpp"
#include "kernels/exec/host/group.hpp"
#include "kernels/exec/host/queue.hpp"
#include "kernels/ops/host/fold_host.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

class HostDevice final : public Device {
 public:
  explicit HostDevice(int threads) : threads_(threads) {}

  Execution execution() const override { return Execution::host; }
  std::string describe() const override {
    return fmt::format("host, {} cores, {}", std::thread::hardware_concurrency(),
                       fold_instruction_set());
  }
  std::string identity() const override { return {}; }

  void* allocate(std::size_t bytes) override { return process_arena().allocate(bytes); }
  void deallocate(void* memory) noexcept override { process_arena().deallocate(memory); }

  void* reserve(std::size_t bytes) override {
    return process_arena().allocate(bytes, Backing::later);
  }
  void back(void* part, std::size_t bytes) override { process_arena().back(part, bytes); }

  void* allocate_control(std::size_t bytes) override {
    void* memory = ::operator new (bytes, std::align_val_t{line_bytes});
    return std::memset(memory, 0, bytes);
  }
  void deallocate_control(void* memory) noexcept override {
    ::operator delete (memory, std::align_val_t{line_bytes});
  }

  void copy_now(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }

  bool export_memory(const void* pointer, MemoryHandle& handle, std::size_t& offset) override {
    Arena& arena = process_arena();
    if (!arena.contains(pointer, 0)) return false;
    handle = {.bytes = {}, .size = arena.size(), .descriptor = arena.descriptor()};
    offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - arena.base());
    return true;
  }
  std::unique_ptr<Mapping> import_memory(const MemoryHandle&) override {
    throw Error(ErrorCode::unsupported,
                "host memory is mapped a process at a time, by transport/mapped/peers");
  }

  std::unique_ptr<Queue> create_queue() override {
    return std::make_unique<HostQueue>([this](const Launch& launch) { run(launch); });
  }
  std::unique_ptr<Event> create_event() override { return std::make_unique<HostEvent>(); }

  void run(const Launch& launch) override {
    const auto block = [&](int b) {
      HostGroup group(b, launch.blocks, launch.view->spins);
      run_block(group, *launch.view, launch.args);
    };
    if (launch.blocks == 1) return block(0);
    crew_.run(launch.blocks, block);
  }

  void launch_together(std::span<Queue* const> queues, std::span<const Launch> launches) override {
    for (std::size_t i = 0; i < launches.size(); ++i) queues[i]->launch(launches[i]);
  }

  int blocks(int wanted, int ranks) const override {
    return wanted != 0 ? wanted : std::max(threads_ / std::max(ranks, 1), 1);
  }
  bool side_by_side() const override { return true; }
  int most_ranks() const override { return max_fan; }

 private:
  int threads_;
  Crew crew_;
};

}  // namespace

std::unique_ptr<Device> make_host_device(int threads) {
  return std::make_unique<HostDevice>(threads);
}

}  // namespace treering
