#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/log.hpp"
#include "collectives/arguments.hpp"
#include "collectives/membership.hpp"
#include "collectives/part_tables.hpp"
#include "collectives/point_to_point.hpp"
#include "collectives/refusal.hpp"
#include "kernels/exec/device.hpp"
#include "plan/choice.hpp"
#include "treering/error.hpp"
#include "treering/treering.hpp"

namespace treering {

/// How a communicator came about.
struct Communicator::Origin {
  UniqueId id;
  std::vector<int> global_ranks;  ///< of each of its ranks
  Options options;

  int size() const { return static_cast<int>(global_ranks.size()); }
};

/// One rank of a communicator. `mutex` orders its calls.
struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  State(std::shared_ptr<Membership> s, const Origin& o)
      : seat(std::move(s)),
        origin(o),
        guard(seat, &seat->guard()),
        latest(seat->device().create_event()),
        tables(seat->device(), seat->size()),
        post_room(seat->device()) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    try {
      latest->synchronize();
      post_room.synchronize();
    } catch (const Error& error) {  // the machine's: whoever waited for the stream has it, too
      log(LogLevel::info, "rank {}: its last call failed: {}", seat->rank(), error.what());
    }
    Membership::retire(std::move(seat));
  }

  /// The arguments need not have been checked.
  void call(Arguments, const CallOptions& how);
  Forced forced(Collective, std::size_t bytes, const CallOptions& how) const;
  Choice choice_of(const Arguments& args, const CallOptions& how);
  Launch plan(const Arguments& args, const CallOptions& how);
  void add_parts(const Arguments& args, Launch& launch);
  /// Sees to the memory that a call needs, by `back`. The others would wait for a rank that has none.
  template <class Back>
  void provide(const char* call, Back back) {
    try {
      refusing(call, seat->rank(), back);
    } catch (const Error& error) {
      guard->give_up(error.code());
      throw;
    }
  }
  void exchange(std::span<const Transfer> transfers, const CallOptions& how);
  void run(const Launch& launch);
  void enqueue(const Launch& launch, Stream& stream, std::shared_ptr<Parcel> parcel = nullptr);

  /// False for messages where a rank's calls may run side by side: only they are independent of
  /// the order of calls.
  bool is_ordered(const Launch& launch) const {
    return launch.args.call.collective != Collective::point_to_point ||
           !seat->device().side_by_side();
  }
  /// Around a launch on a queue.
  void follow_latest(Queue& queue, const Launch& launch);
  void record(Queue& queue, const Launch& launch, std::shared_ptr<Parcel> parcel);

  /// The groups of the same members in the same order, which are made one after the other.
  struct Series {
    std::mutex turn;  ///< held while one is made
    /// How many were. Where a member does not come, all members try again with the same number.
    std::atomic<int> made{0};
  };
  Series& series_of(const std::vector<int>& ranks);
  /// The group of these ranks that is known by these words; joins it.
  Origin group_of(const std::vector<int>& ranks, const std::string& words) const;
  Communicator join_group(const std::vector<int>& members, const std::string& words) const;

  /// What a rank wants of a split; every rank's.
  struct Wish {
    std::int32_t color, key;
  };
  std::vector<Wish> gather_wishes(const Wish& mine);

  std::shared_ptr<Membership> seat;
  const Origin origin;
  std::shared_ptr<Guard> guard;
  std::mutex mutex;
  std::unique_ptr<Event> latest;  ///< of the latest call that went to a queue
  Queue* latest_queue = nullptr;  ///< null: nothing is queued
  PartTables tables;
  PostRoom post_room;
  /// What a choice depends on in a communicator, besides CallOptions::choice.
  struct Asked {
    Collective collective;
    std::size_t bytes, element_bytes;
    bool scaled;
    std::optional<Algorithm> algorithm;
    std::optional<WireType> wire;
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  struct Chosen {
    Asked asked;
    Choice choice;
  };
  std::optional<Chosen> chosen;  ///< the latest
  Algorithm algorithm{};         ///< of the latest call
  WireType wire{};
  int blocks = 0;
  std::map<std::vector<int>, Series> groups;  ///< by members
  std::mutex groups_mutex;  ///< another than that of calls: a group may be made while one waits
  std::mutex splitting;     ///< held by split()
  int splits = 0;           ///< that were made
};

}  // namespace treering
