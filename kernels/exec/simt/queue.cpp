#include "kernels/exec/simt/queue.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/ops/device_fold.hpp"

namespace treering {

using simt::engine;

namespace {

std::unique_ptr<simt::Work> make_launch(simt::QueueState& queue, const Launch& launch) {
  const auto kernel = [view = launch.view, args = launch.args](SimtGroup& group) {
    run_block(group, *view, args);
  };
  return make_work(queue, {launch.blocks, simt::config().threads, launch.view->rank}, kernel);
}

/// A copy, a record or a wait: nothing that needs a slot.
std::unique_ptr<simt::Work> make_command(simt::QueueState& queue, simt::Kernel what) {
  auto work = make_work(queue, {1, 1}, std::move(what));
  work->grid.command = true;
  return work;
}

/// By what name a kernel of the catalog is loaded: its place there.
std::size_t code_of(const Launch& launch) {
  const Kernel wanted = kernel_of(launch.args.call);
  return static_cast<std::size_t>(std::ranges::find(catalog, wanted) - std::begin(catalog));
}

}  // namespace

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
  engine().load(kernel.target_type().hash_code());
  engine().enqueue(state_, make_work(state_, shape, std::move(kernel)));
}

void SimtQueue::launch(const Launch& launch) {
  engine().load(code_of(launch));
  engine().enqueue(state_, make_launch(state_, launch));
}

/// Messages are no team: one may wait for another that comes later in the same group.
void SimtQueue::launch_together(std::span<Queue* const> queues, std::span<const Launch> launches) {
  std::vector<simt::QueueState*> states;
  std::vector<std::unique_ptr<simt::Work>> works;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    auto& queue = dynamic_cast<SimtQueue&>(*queues[i]);
    if (launches[i].args.call.collective == Collective::point_to_point) {
      queue.launch(launches[i]);
      continue;
    }
    engine().load(code_of(launches[i]));
    states.push_back(&queue.state_);
    works.push_back(make_launch(queue.state_, launches[i]));
  }
  if (!works.empty()) engine().enqueue_team(states, std::move(works));
}

void SimtQueue::preload_catalog() {
  for (std::size_t code = 0; code < std::size(catalog); ++code) engine().preload(code);
}

void SimtQueue::copy(void* destination, const void* source, std::size_t bytes) {
  const auto copy = [=](SimtGroup&) { std::memcpy(destination, source, bytes); };
  engine().enqueue(state_, make_command(state_, copy));
}

void SimtQueue::record(Event& event) {
  auto record = std::make_shared<simt::Record>();
  auto work = make_command(state_, [to = record.get()](SimtGroup&) { to->tag.release(); });
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
  auto work = make_command(state_, [of = record.get()](SimtGroup&) { of->tag.acquire(); });
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
