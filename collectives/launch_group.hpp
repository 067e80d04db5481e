#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "collectives/state.hpp"

namespace treering {

/// What a LaunchGroup has collected.
struct LaunchGroup::State {
  struct Member {
    std::shared_ptr<Communicator::State> caller;
    std::shared_ptr<Queue> queue;
    Launch launch;
    std::shared_ptr<Parcel> parcel;  ///< of point-to-point messages
  };
  std::vector<Member> members;

  /// The group that collects this thread's calls, or null.
  static State*& current() {
    thread_local State* collecting = nullptr;
    return collecting;
  }

  void add(Member member) {
    if (std::ranges::find(members, member.caller, &Member::caller) != members.end())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("rank {} has a call in this LaunchGroup already; launch that one first",
                      member.caller->seat->rank()),
          {member.caller->seat->rank()});
    members.push_back(std::move(member));
  }
};

}  // namespace treering
