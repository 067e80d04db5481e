#pragma once

// The small interface to the machine that kernels run on: memory, queues (streams), events, memory handles
// for other processes, launches. One implementation for each execution; the rest of the library sees only this.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/wire/view.hpp"

namespace treering {

enum class Execution : std::uint8_t { cuda, host, simt };
const char* name(Execution) noexcept;

/// One rank's kernel: `blocks` blocks that run `args` on `view`. The view outlives the launch.
struct Launch {
  const RankView* view = nullptr;
  CallArgs args{};
  int blocks = 1;
};

/// A point in a queue's work. Reusable: what counts is the latest record.
class Event {
 public:
  virtual ~Event() = default;
  /// True if never recorded, or all work before the latest record has completed.
  virtual bool done() = 0;
  /// Waits until done().
  virtual void synchronize() = 0;
};

/// Work that is done in order, while the caller goes on. Callable from any thread. A queue that is destroyed
/// first completes what it holds.
class Queue {
 public:
  virtual ~Queue() = default;
  virtual void launch(const Launch&) = 0;
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void record(Event&) = 0;
  /// Work that follows in this queue waits until the event is done.
  virtual void wait(Event&) = 0;
  virtual bool idle() = 0;
  /// Returns when the queue is idle. Kernels that fail leave a Verdict; the queue does not throw for them.
  virtual void synchronize() = 0;
  /// The queue in the terms of the machine: a cudaStream_t, or null.
  virtual void* native() { return nullptr; }
};

/// Names an allocation for another process; `descriptor` (if not -1) must travel by SCM_RIGHTS and is owned
/// by the device that exported it.
struct MemoryHandle {
  std::array<std::byte, 64> bytes{};
  std::uint64_t size = 0;
  int descriptor = -1;
};

/// Another process's memory in this one; unmapped when destroyed.
class Mapping {
 public:
  virtual ~Mapping() = default;
  virtual std::byte* base() const = 0;
};

/// On a GPU, allocate(), reserve(), device_view(), allocate_control(), their opposites, copy_now() and
/// import_memory() may wait until kernels have ended: call them before any rank launches. back() and
/// launches do not wait, nor does create_queue() while there are queues that were made in advance.
class Device {
 public:
  virtual ~Device() = default;
  virtual Execution execution() const = 0;
  /// For people: "host, 2 cores, AVX-512" or the GPU's name.
  virtual std::string describe() const = 0;
  /// True for devices that are one piece of hardware (compared by PCI id), so that ranks must share it.
  virtual std::string identity() const = 0;

  /// Memory that peers can map; zeroed, aligned to 256 bytes. Throws Error{out_of_memory}.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void*) noexcept = 0;
  /// Memory like that of allocate(), parts of which become usable (and cost anything) by back().
  virtual void* reserve(std::size_t bytes) { return allocate(bytes); }
  virtual void back(void* /*part*/, std::size_t /*bytes*/) {}
  /// How kernels reach host memory that peers share: its address for them.
  virtual void* device_view(void* host, std::size_t /*bytes*/) { return host; }
  /// Undoes device_view(), before the memory is freed or unmapped.
  virtual void release_view(void* /*host*/, std::size_t /*bytes*/) noexcept {}
  /// Host memory that kernels of this process can read and write; zeroed.
  virtual void* allocate_control(std::size_t bytes) = 0;
  virtual void deallocate_control(void*) noexcept = 0;
  /// Copies now, in either direction between host and device memory.
  virtual void copy_now(void* destination, const void* source, std::size_t bytes) = 0;

  /// The allocation around `pointer`, and how far into it the pointer lies. False if it cannot be exported.
  virtual bool export_memory(const void* pointer, MemoryHandle&, std::size_t& offset) = 0;
  virtual std::unique_ptr<Mapping> import_memory(const MemoryHandle&) = 0;

  virtual std::unique_ptr<Queue> create_queue() = 0;
  virtual std::unique_ptr<Event> create_event() = 0;

  /// Runs kernels and returns when they have completed. On the host the calling thread runs them.
  virtual void run(const Launch&) = 0;
  /// Launches the kernels of several ranks so that they run together, each behind its queue's earlier work.
  virtual void launch_together(std::span<Queue* const> queues,
                               std::span<const Launch> launches) = 0;

  /// Blocks that a launch may have, if `ranks` ranks share the device and the user asked for `wanted` (0: for what is
  /// good). Never more than can run at once.
  virtual int blocks(int wanted, int ranks) const = 0;
  /// Whether launches of one rank may run at the same time, in several queues and threads.
  virtual bool side_by_side() const { return false; }
  /// Most ranks of one communicator.
  virtual int most_ranks() const = 0;
  /// Whether kernels can read and write memory that a user passes.
  virtual bool reaches(const void* /*memory*/) const { return true; }
  /// What users should be warned of if `ranks` ranks in `processes` processes of this machine share the device;
  /// empty if nothing.
  virtual std::string caution(int /*ranks*/, int /*processes*/) const { return {}; }
};

/// This process's device, chosen once: TREERING_DEVICE, or a GPU if there is one, else the host.
/// Throws Error{unsupported} if what was asked for is not there.
Device& device();

}  // namespace treering
