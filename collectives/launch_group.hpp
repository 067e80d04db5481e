#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/state.hpp"

namespace treering {

/// What a LaunchGroup has collected.
struct LaunchGroup::State {
  std::vector<std::shared_ptr<Communicator::State>> callers;
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<Launch> launches;

  /// The group that collects this thread's calls, or null.
  static State*& current() {
    thread_local State* collecting = nullptr;
    return collecting;
  }

  void add(std::shared_ptr<Communicator::State> caller, std::shared_ptr<Queue> queue,
           const Launch& launch) {
    if (std::ranges::find(callers, caller) != callers.end())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("rank {} has a call in this LaunchGroup already; launch that one first",
                      caller->seat->rank()),
          {caller->seat->rank()});
    callers.push_back(std::move(caller));
    queues.push_back(std::move(queue));
    launches.push_back(launch);
  }
};

}  // namespace treering
