#pragma once

// The host in place of a GPU; rig.hpp says what each thing stands for.

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/qualifiers.hpp"
#include "perf/gpu_check/probe.hpp"
#include "perf/gpu_check/rig_types.hpp"

namespace treering::gpu_check::on_host {

/// Never needed: here everything runs at the same time.
inline constexpr double patience_seconds = 5;
inline constexpr std::uint64_t effort = 1;  ///< scales rounds and bytes
inline constexpr int warp = 1, line_threads = 1;

struct At {
  int block, blocks, thread, threads;
  bool leader() const { return true; }
  void sync() const {}
};

inline std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
inline void rest() { std::this_thread::yield(); }
inline void poll_again() { std::this_thread::yield(); }

template <Raise>
void raise(std::uint64_t& word, std::uint64_t value) {
  store_release(word, value);
}
inline std::uint64_t poll_acquire(const std::uint64_t& word) { return load_acquire(word); }
inline std::uint64_t load_cached(const std::uint64_t* word) { return load_relaxed(*word); }
inline void fence_alias() {}

/// A flag and the payload in one 64-bit word each, two at a time.
inline void store_elements(Pack* to, Pack value) {
  store_release(to->low, value.low);
  store_release(to->high, value.high);
}
inline Pack load_elements(const Pack* from) {
  return {load_acquire(from->low), load_acquire(from->high)};
}

/// For all threads of a warp, which call it together.
inline bool warp_any(bool p) { return p; }

/// A line of 128 bytes: fifteen words and a flag.
inline void store_line(const At&, std::uint64_t* line, std::uint64_t base, std::uint64_t flag) {
  for (std::uint64_t i = 0; i < 15; ++i) store_relaxed(line[i], base + i);
  store_release(line[15], flag);
}
/// False while the flag is not there. Counts words that are not what belongs to the flag.
inline bool load_line(const At&, const std::uint64_t* line, std::uint64_t base, std::uint64_t flag,
                      std::uint64_t& torn) {
  if (load_acquire(line[15]) != flag) return false;
  for (std::uint64_t i = 0; i < 15; ++i) torn += load_relaxed(line[i]) != base + i;
  return true;
}

/// Work in order, while the caller goes on.
class Lane {
 public:
  void push(std::function<void()> work) {
    last_ = std::async(std::launch::async, [before = std::move(last_), work = std::move(work)] {
              if (before.valid()) before.wait();
              work();
            }).share();
  }
  bool wait(double seconds) const {
    return !last_.valid() ||
           last_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  }

 private:
  std::shared_future<void> last_;
};

class Graph {
 public:
  explicit Graph(std::function<void()> calls) : calls_(std::move(calls)) {}
  void replay(Lane&) const { calls_(); }

 private:
  std::function<void()> calls_;
};

class Rig {
 public:
  explicit Rig(int device = 0) : device_(device) {}

  void describe(Findings&) const;
  bool under_mps() const { return false; }
  bool has_domains() const { return true; }
  std::size_t cache_bytes() const { return std::size_t{1} << 20; }
  std::size_t big_bytes() const { return std::size_t{4} << 20; }

  std::uint64_t* device_words(std::size_t count) { return words(count); }
  std::uint64_t* host_words(std::size_t count) { return words(count); }
  std::byte* device_bytes(std::size_t bytes) {
    return reinterpret_cast<std::byte*>(words(bytes / sizeof(std::uint64_t)));
  }
  std::byte* pinned_bytes(std::size_t bytes) { return device_bytes(bytes); }
  std::byte* pageable_bytes(std::size_t bytes) { return device_bytes(bytes); }
  /// The same memory at two addresses.
  std::pair<std::uint64_t*, std::uint64_t*> two_addresses(std::size_t count);
  std::uint64_t* share(Sharing, std::size_t count, Shared&);
  std::uint64_t* open(Sharing, const Shared&);
  /// Whether this device's kernels may use the other's memory; makes it so.
  bool reach(const Rig&) { return true; }

  Lane lane() { return {}; }
  /// Makes the kernel ready: a first launch may wait until all running kernels have ended.
  template <class Task>
  void load() const {}
  template <class Task>
  void launch(Lane& lane, const Shape& shape, const Task& task) {
    lane.push([=] {
      std::vector<std::jthread> blocks;
      for (int b = 1; b < shape.blocks; ++b)
        blocks.emplace_back([=] { task(At{b, shape.blocks, 0, 1}); });
      task(At{0, shape.blocks, 0, 1});
    });
  }
  void copy(Lane&, void* to, const void* from, std::size_t bytes);
  /// True if everything in the lane is done, or is within so many seconds. Throws what CUDA says.
  bool wait(Lane& lane, double seconds) { return lane.wait(seconds); }
  /// Blocks of that kernel that run at the same time.
  template <class Task>
  int resident(int /*threads*/) const {
    return 4;
  }
  Graph capture(std::span<Lane>, std::function<void()> calls) { return Graph(std::move(calls)); }

 private:
  std::uint64_t* words(std::size_t count);
  int device_;
};

/// Something that may have to wait for running kernels. `prepare` does what comes before.
struct Action {
  std::string name;
  std::function<std::function<void()>(Rig&)> prepare;
  std::vector<std::string> environment = {};
};
std::vector<Action> actions();

}  // namespace treering::gpu_check::on_host
