#pragma once

#include <memory>
#include <mutex>

#include "collectives/arguments.hpp"
#include "collectives/membership.hpp"
#include "collectives/point_to_point.hpp"
#include "kernels/exec/device.hpp"
#include "treering/treering.hpp"

namespace treering {

/// One rank of a communicator. `mutex` orders its calls.
struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  explicit State(std::shared_ptr<Membership> s)
      : seat(std::move(s)),
        guard(seat, &seat->guard()),
        latest(seat->device().create_event()),
        post_room(seat->device()) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    latest->synchronize();
    post_room.synchronize();
    Membership::retire(std::move(seat));
  }

  void call(const Arguments& args, const CallOptions& how);
  Launch plan(const Arguments& args, const CallOptions& how) const;
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

  std::shared_ptr<Membership> seat;
  std::shared_ptr<Guard> guard;
  std::mutex mutex;
  std::unique_ptr<Event> latest;  ///< of the latest call that went to a queue
  Queue* latest_queue = nullptr;  ///< null: nothing is queued
  PostRoom post_room;
  Algorithm algorithm{};  ///< of the latest call
  int blocks = 0;
};

}  // namespace treering
