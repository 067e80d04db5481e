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

  static bool waits_for_ever_behind(const Member& other, const Member& member) {
    const auto is_collective = [](const Member& m) {
      return m.launch.args.call.collective != Collective::point_to_point;
    };
    return other.queue == member.queue && is_collective(other) && is_collective(member) &&
           other.caller->origin.id.bytes() == member.caller->origin.id.bytes();
  }

  void add(Member member) {
    if (std::ranges::find(members, member.caller, &Member::caller) != members.end())
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("rank {} has a call in this LaunchGroup already; launch that one first",
                      member.caller->seat->rank()),
          {member.caller->seat->rank()});
    for (const Member& other : members)
      if (waits_for_ever_behind(other, member))
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("ranks {} and {} of one communicator are on the same stream in "
                                "this LaunchGroup, where one would wait for the other to end; "
                                "give each rank a stream of its own",
                                other.caller->seat->rank(), member.caller->seat->rank()),
                    {member.caller->seat->rank()});
    members.push_back(std::move(member));
  }
};

}  // namespace treering
