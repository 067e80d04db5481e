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
  if (state_->launches.empty()) return;
  // Other threads' calls come before or after. Locks are taken in one order, whoever launches.
  std::vector<Communicator::State*> callers;
  std::vector<Queue*> queues;
  for (const auto& caller : state_->callers) callers.push_back(caller.get());
  for (const auto& queue : state_->queues) queues.push_back(queue.get());
  std::vector<Communicator::State*> in_order = callers;
  std::ranges::sort(in_order, std::less{});
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Communicator::State* caller : in_order) locks.emplace_back(caller->mutex);

  for (std::size_t i = 0; i < callers.size(); ++i) callers[i]->follow_latest(*queues[i]);
  device().launch_together(queues, state_->launches);
  for (std::size_t i = 0; i < callers.size(); ++i) queues[i]->record(*callers[i]->latest);
  locks.clear();
  *state_ = {};
}

}  // namespace treering
