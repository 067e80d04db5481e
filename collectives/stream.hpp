#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "collectives/guard.hpp"
#include "kernels/exec/device.hpp"
#include "treering/treering.hpp"

namespace treering {

/// A queue, and whose calls went through it since the last synchronize().
struct Stream::State {
  std::shared_ptr<Queue> queue = device().create_queue();  ///< shared with a LaunchGroup
  std::mutex mutex;
  std::vector<std::shared_ptr<Guard>> callers;

  void note(const std::shared_ptr<Guard>& caller) {
    const std::lock_guard lock(mutex);
    for (const auto& known : callers)
      if (known == caller) return;
    callers.push_back(caller);
  }
};

}  // namespace treering
