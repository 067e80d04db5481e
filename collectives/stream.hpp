#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "collectives/guard.hpp"
#include "collectives/point_to_point.hpp"
#include "kernels/exec/device.hpp"
#include "treering/treering.hpp"

namespace treering {

/// A queue, and whose calls went through it since the last synchronize().
struct Stream::State {
  std::shared_ptr<Queue> queue = device().create_queue();  ///< shared with a LaunchGroup
  std::mutex mutex;
  std::vector<std::shared_ptr<Guard>> callers;
  std::vector<std::shared_ptr<Parcel>> parcels;  ///< whose messages are not delivered yet

  void note(const std::shared_ptr<Guard>& caller, const std::shared_ptr<Parcel>& parcel) {
    const std::lock_guard lock(mutex);
    std::erase_if(parcels, [](const auto& earlier) { return earlier->deliver(); });
    if (parcel != nullptr) parcels.push_back(parcel);
    for (const auto& known : callers)
      if (known == caller) return;
    callers.push_back(caller);
  }
};

}  // namespace treering
