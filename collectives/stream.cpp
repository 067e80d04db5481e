#include "collectives/stream.hpp"

#include <utility>

namespace treering {

Stream::Stream() : state_(std::make_unique<State>()) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

void Stream::synchronize() {
  state_->queue->synchronize();
  std::vector<std::shared_ptr<Guard>> callers;
  std::vector<std::shared_ptr<Parcel>> parcels;
  {
    const std::lock_guard lock(state_->mutex);
    callers.swap(state_->callers);
    parcels.swap(state_->parcels);
  }
  for (const auto& parcel : parcels) parcel->deliver();
  for (const auto& caller : callers) caller->check();
}

bool Stream::idle() const { return state_->queue->idle(); }
void* Stream::native() const { return state_->queue->native(); }

}  // namespace treering
