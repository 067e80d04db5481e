#include "collectives/launch_group.hpp"

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
  State::current() = nullptr;
  if (state_->launches.empty()) return;
  const std::size_t calls = state_->callers.size();
  std::vector<std::unique_lock<std::mutex>> locks;  // other threads' calls come before or after
  for (std::size_t i = 0; i < calls; ++i) {
    locks.emplace_back(state_->callers[i]->mutex);
    state_->callers[i]->follow_latest(*state_->queues[i]);
  }
  device().launch_together(state_->queues, state_->launches);
  for (std::size_t i = 0; i < calls; ++i) state_->queues[i]->record(*state_->callers[i]->latest);
  locks.clear();
  *state_ = {};
}

}  // namespace treering
