#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace treering {

/// Runs the blocks of a launch at the same time: block 0 on the calling thread, each other on a
/// thread of its own, which is kept for the next launch. Where the system gives no more threads,
/// blocks are left for the calling thread. Callable from several threads at once.
class Crew {
 public:
  Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  /// Calls `block(b)` for b < blocks and returns when all have returned. `block` must not throw.
  void run(int blocks, const std::function<void(int)>& block);

 private:
  struct Worker;
  std::unique_ptr<Worker> hire();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace treering
