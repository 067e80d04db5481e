#include "kernels/exec/simt/queue.hpp"

#include <cstring>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/ops/device_fold.hpp"

namespace treering {

using simt::engine;

bool SimtEvent::done() {
  return engine().ask([&] {
    if (record_ && record_->done) record_->tag.acquire();
    return !record_ || record_->done;
  });
}

void SimtEvent::synchronize() {
  auto lock = engine().lock();
  const auto record = record_;
  if (!record) return;
  engine().wait(lock, [&] { return record->done; });
  record->tag.acquire();
  if (record->failure) throw Error(*record->failure);
}

SimtQueue::SimtQueue() { engine().add(state_); }

SimtQueue::~SimtQueue() {
  {
    auto lock = engine().lock();
    engine().wait(lock, [&] { return state_.works.empty(); });
    state_.tag.acquire();
  }
  engine().remove(state_);
}

void SimtQueue::launch(simt::Kernel kernel, const simt::Shape& shape) {
  engine().enqueue(state_, make_work(state_, shape, std::move(kernel)));
}

void SimtQueue::launch(const Launch& launch) {
  const auto kernel = [view = launch.view, args = launch.args](SimtGroup& group) {
    run_block(group, *view, args);
  };
  this->launch(kernel, {launch.blocks, simt::config().threads, launch.view->rank});
}

void SimtQueue::copy(void* destination, const void* source, std::size_t bytes) {
  launch([=](SimtGroup&) { std::memcpy(destination, source, bytes); }, {1, 1});
}

void SimtQueue::record(Event& event) {
  auto record = std::make_shared<simt::Record>();
  auto work = make_work(state_, {1, 1}, [to = record.get()](SimtGroup&) { to->tag.release(); });
  work->completes = record;
  {
    const auto lock = engine().lock();
    dynamic_cast<SimtEvent&>(event).record_ = std::move(record);
  }
  engine().enqueue(state_, std::move(work));
}

void SimtQueue::wait(Event& event) {
  std::shared_ptr<simt::Record> record;
  {
    const auto lock = engine().lock();
    record = dynamic_cast<SimtEvent&>(event).record_;
  }
  if (!record) return;
  auto work = make_work(state_, {1, 1}, [of = record.get()](SimtGroup&) { of->tag.acquire(); });
  work->after = std::move(record);
  engine().enqueue(state_, std::move(work));
}

bool SimtQueue::idle() {
  return engine().ask([&] { return state_.works.empty(); });
}

void SimtQueue::synchronize() {
  auto lock = engine().lock();
  engine().wait(lock, [&] { return state_.works.empty(); });
  state_.tag.acquire();
  if (const auto failure = std::exchange(state_.failure, nullptr)) throw Error(*failure);
}

}  // namespace treering
