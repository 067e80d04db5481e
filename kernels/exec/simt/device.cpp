#include "kernels/exec/simt/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/exec/simt/queue.hpp"
#include "kernels/exec/simt/scheduler.hpp"
#include "kernels/ops/device_fold.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// With Malice::synchronizing, what may wait for kernels on a GPU does so here.
class SimtDevice final : public Device {
 public:
  SimtDevice() { SimtQueue::preload_catalog(); }

  Execution execution() const override { return Execution::simt; }
  std::string describe() const override {
    const simt::Config config = simt::config();
    return fmt::format("simt, {} threads per block, seed {}", config.threads, config.seed);
  }
  std::string identity() const override { return "simt"; }

  // One piece from malloc each, of exactly the size asked for: AddressSanitizer guards its end.
  void* allocate(std::size_t bytes) override {
    simt::engine().synchronize_device("an allocation");
    constexpr std::size_t alignment = 256;
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, std::max<std::size_t>(bytes, 1)) != 0)
      throw Error(ErrorCode::out_of_memory,
                  fmt::format("no memory for {} bytes on the simt device", bytes));
    return std::memset(memory, 0, bytes);
  }
  void deallocate(void* memory) noexcept override {
    simt::engine().synchronize_device("a deallocation");
    std::free(memory);
  }
  void* device_view(void* host, std::size_t) override {
    simt::engine().synchronize_device("a registration of host memory");
    return host;
  }
  void release_view(void*, std::size_t) noexcept override {
    simt::engine().synchronize_device("the end of a registration of host memory");
  }
  void* allocate_control(std::size_t bytes) override { return allocate(bytes); }
  void deallocate_control(void* memory) noexcept override { deallocate(memory); }
  void copy_now(void* destination, const void* source, std::size_t bytes) override {
    simt::engine().synchronize_device("a copy");
    std::memcpy(destination, source, bytes);
  }

  bool export_memory(const void*, MemoryHandle&, std::size_t&) override { return false; }
  std::unique_ptr<Mapping> import_memory(const MemoryHandle&) override {
    throw Error(ErrorCode::unsupported,
                "the simt device lives in one process and maps no other's memory; run ranks as "
                "threads, or set "
                "TREERING_DEVICE=host");
  }

  std::unique_ptr<Queue> create_queue() override { return std::make_unique<SimtQueue>(); }
  std::unique_ptr<Event> create_event() override { return std::make_unique<SimtEvent>(); }

  void run(const Launch& launch) override {
    SimtQueue queue;
    queue.launch(launch);
    queue.synchronize();
  }

  void launch_together(std::span<Queue* const> queues, std::span<const Launch> launches) override {
    SimtQueue::launch_together(queues, launches);
  }

  int blocks(int wanted, int ranks) const override {
    constexpr int enough = 2;  // to see that blocks do not disturb each other
    const simt::Config config = simt::config();
    const int room = simt::Scheduler::most_fibers / config.threads, slots = config.malice.slots;
    const int fit = (slots != 0 ? std::min(slots, room) : room) / std::max(ranks, 1);
    return std::clamp(wanted != 0 ? wanted : enough, 1, std::max(fit, 1));
  }
  int most_ranks() const override { return device_max_fan / 2; }
};

}  // namespace

std::unique_ptr<Device> make_simt_device() { return std::make_unique<SimtDevice>(); }

}  // namespace treering
