#include "kernels/exec/simt/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/exec/simt/report.hpp"
#include "kernels/exec/simt/scheduler.hpp"

namespace treering::simt {

void configure(const Config& config) { engine().configure(config); }
Config config() { return engine().config(); }
void run_all() { engine().run_all(); }
std::uint64_t trace() {
  const auto lock = engine().lock();
  return scheduler().trace();
}

Engine& engine() {
  static Engine& one = *new Engine;  // never destroyed: queues of static life may outlive anything
  return one;
}

namespace {

void check(const Shape& shape) {
  const auto in_all = static_cast<std::int64_t>(shape.blocks) * shape.threads;
  if (shape.blocks > 0 && shape.threads > 0 && shape.threads <= most_threads &&
      in_all <= Scheduler::most_fibers)
    return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format(
          "a kernel of {} blocks of {} threads: simt runs 1 to {} threads in a block, and up to "
          "{} in all",
          shape.blocks, shape.threads, most_threads, Scheduler::most_fibers));
}

}  // namespace

std::unique_ptr<Work> make_work(QueueState& queue, const Shape& shape, Kernel kernel) {
  check(shape);
  auto work = std::make_unique<Work>();
  work->grid.blocks = shape.blocks;
  work->grid.threads = shape.threads;
  work->grid.rank = shape.rank;
  work->grid.order = &queue.tag;
  furnish(work->grid, std::move(kernel));
  return work;
}

/// The role of the runner, for as long as it lives.
class Engine::Runner {
 public:
  explicit Runner(Engine& engine) : engine_(engine) { engine_.has_runner_ = true; }
  ~Runner() {
    engine_.has_runner_ = false;
    engine_.changed_.notify_all();
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

 private:
  Engine& engine_;
};

void Engine::configure(const Config& config) {
  check({1, config.threads});
  const Lock lock(mutex_);
  config_ = config;
  grids_ = 0;
  scheduler().seed(config.seed);
}

Config Engine::config() {
  const Lock lock(mutex_);
  return config_;
}

void Engine::add(QueueState& queue) {
  const Lock lock(mutex_);
  queues_.push_back(&queue);
}

void Engine::remove(QueueState& queue) {
  const Lock lock(mutex_);
  std::erase(queues_, &queue);
}

void Engine::enqueue(QueueState& queue, std::unique_ptr<Work> work) {
  const Lock lock(mutex_);
  work->grid.number = grids_++;
  queue.works.push_back(std::move(work));
  news_ = true;
  arrived_.notify_one();
}

void Engine::wait(Lock& lock, const Condition& done, bool closed) {
  while (!done()) {
    if (has_runner_) {
      changed_.wait(lock);
      continue;
    }
    const Runner role(*this);
    quiet_since_.reset();  // patience begins when somebody runs
    while (!done()) {
      if (turn(lock, UINT64_MAX) || drop_stuck(closed)) continue;
      scheduler().poll_again();
      rest(lock);
    }
  }
}

bool Engine::ask(const Condition& done) {
  Lock lock(mutex_);
  if (!has_runner_ && !done()) {
    const Runner role(*this);
    if (!turn(lock, 4096) && !drop_stuck(false)) scheduler().poll_again();
  }
  return done();
}

void Engine::run_all() {
  Lock guard(mutex_);
  const auto idle = [](const QueueState* queue) { return queue->works.empty(); };
  wait(
      guard, [&] { return std::all_of(queues_.begin(), queues_.end(), idle); }, true);
  Failure failure;
  for (QueueState* queue : queues_) {
    queue->tag.acquire();
    if (queue->failure) failure = std::exchange(queue->failure, nullptr);
  }
  if (failure) throw Error(*failure);
}

/// One turn of the runner. False if nothing but polls in vain was left to do.
bool Engine::turn(Lock& lock, std::uint64_t steps) {
  news_ = false;
  start_what_can();
  lock.unlock();
  scheduler().run(news_, steps);
  lock.lock();
  bool any = news_ || !scheduler().quiet();
  while (const Grid* grid = scheduler().take_finished()) {
    retire(*grid);
    any = true;
  }
  return any;
}

/// Starts the first work of each queue, unless it must wait: for an event, or for room.
void Engine::start_what_can() {
  for (const QueueState* queue : queues_) {
    if (queue->works.empty()) continue;
    Work& work = *queue->works.front();
    const bool may = (!work.after || work.after->done) && scheduler().has_room(work.grid);
    if (work.started || !may) continue;
    scheduler().start(work.grid);
    work.started = true;
  }
}

void Engine::retire(const Grid& grid) {
  QueueState& queue = queue_of(grid);
  if (Record* record = queue.works.front()->completes.get()) {
    record->failure = queue.failure;
    record->done = true;
  }
  queue.works.pop_front();
  changed_.notify_all();
}

/// Everyone polls in vain: is somebody stuck?
bool Engine::drop_stuck(bool closed) {
  const auto now = std::chrono::steady_clock::now();
  if (!quiet_since_ || quiet_at_ != scheduler().progress()) {
    quiet_since_ = now;
    quiet_at_ = scheduler().progress();
    rests_ = 0;
  }
  std::vector<Grid*> stuck = running();
  if (!closed && now - *quiet_since_ < config_.patience)
    std::erase_if(stuck, [](const Grid* grid) { return !doomed(*grid); });
  if (!stuck.empty()) drop(stuck);
  return !stuck.empty();
}

std::vector<Grid*> Engine::running() const {
  std::vector<Grid*> grids;
  for (const QueueState* queue : queues_)
    if (!queue->works.empty() && queue->works.front()->started)
      grids.push_back(&queue->works.front()->grid);
  return grids;
}

void Engine::drop(const std::vector<Grid*>& grids) {
  const auto report = std::make_shared<const Error>(stuck(grids, config_.seed));
  for (Grid* grid : grids) {
    Failure& failure = queue_of(*grid).failure;
    if (!failure) failure = report;
    scheduler().drop(*grid);
  }
}

/// A flag may still be raised, or something launched, from outside: lets time pass.
void Engine::rest(Lock& lock) {
  constexpr int yields = 64;
  constexpr std::chrono::microseconds nap{50}, longest_nap{1000};
  if (news_) return;
  if (++rests_ > yields) {
    arrived_.wait_for(lock, std::min(nap * (rests_ - yields), longest_nap));
  } else {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
}

QueueState& Engine::queue_of(const Grid& grid) const {
  return **std::find_if(queues_.begin(), queues_.end(), [&](const QueueState* queue) {
    return !queue->works.empty() && &queue->works.front()->grid == &grid;
  });
}

}  // namespace treering::simt
