#include "collectives/launch_group.hpp"

#include <algorithm>
#include <functional>

namespace treering {

LaunchGroup::LaunchGroup() : state_(std::make_unique<State>()) {
  if (State::current() != nullptr)
    throw Error(ErrorCode::invalid_argument,
                "this thread already has a LaunchGroup; launch that one first");
  State::current() = state_.get();
}

LaunchGroup::~LaunchGroup() {
  if (State::current() == state_.get()) State::current() = nullptr;
}

void LaunchGroup::launch() {
  if (State::current() != state_.get())
    throw Error(ErrorCode::invalid_argument,
                "this LaunchGroup collects nothing: launch it once, in the thread that made it");
  State::current() = nullptr;
  const std::vector<State::Member>& members = state_->members;
  if (members.empty()) return;
  // Other threads' calls come before or after. Locks are taken in one order, whoever launches.
  std::vector<Communicator::State*> in_order;
  std::vector<Queue*> queues;
  std::vector<Launch> launches;
  for (const State::Member& m : members) {
    if (m.caller->is_ordered(m.launch)) in_order.push_back(m.caller.get());
    queues.push_back(m.queue.get());
    launches.push_back(m.launch);
  }
  std::ranges::sort(in_order, std::less{});
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Communicator::State* caller : in_order) locks.emplace_back(caller->mutex);

  for (const State::Member& m : members) m.caller->follow_latest(*m.queue, m.launch);
  device().launch_together(queues, launches);
  for (const State::Member& m : members) m.caller->record(*m.queue, m.launch, m.parcel);
  locks.clear();
  *state_ = {};
}

}  // namespace treering
