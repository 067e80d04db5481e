#include "kernels/exec/simt/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
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
  std::erase_if(loaded_, [](const auto& code) { return !code.second; });
  scheduler().seed(config.seed, config.malice);
}

Config Engine::config() {
  const Lock lock(mutex_);
  return config_;
}

void Engine::add(QueueState& queue) {
  const Lock lock(mutex_);
  queue.number = queues_made_++;
  queues_.push_back(&queue);
}

void Engine::remove(QueueState& queue) {
  const Lock lock(mutex_);
  std::erase(queues_, &queue);
}

void Engine::enqueue(QueueState& queue, std::unique_ptr<Work> work) {
  const Lock lock(mutex_);
  append(queue, std::move(work));
}

void Engine::enqueue_team(std::span<QueueState* const> queues,
                          std::vector<std::unique_ptr<Work>> works) {
  const Lock lock(mutex_);
  int blocks = 0;
  for (const auto& work : works) blocks += work->grid.blocks;
  if (const int slots = config_.malice.slots; slots != 0 && blocks > slots) {
    for (const auto& work : works) clear(work->grid.kernel, work->grid.block);
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{} blocks are to run together, but simt has slots for {}", blocks, slots));
  }
  const std::uint64_t team = grids_ + 1;
  for (std::size_t i = 0; i < works.size(); ++i) {
    works[i]->team = team;
    works[i]->team_size = static_cast<int>(works.size());
    works[i]->grid.together = works.size() > 1;
    append(*queues[i], std::move(works[i]));
  }
}

void Engine::append(QueueState& queue, std::unique_ptr<Work> work) {
  work->grid.number = grids_++;
  queue.works.push_back(std::move(work));
  news_ = true;
  arrived_.notify_one();
}

void Engine::synchronize_device(const char* call) {
  Lock guard(mutex_);
  if (!config_.malice.synchronizing) return;
  const std::uint64_t now = grids_;
  waiting_calls_.push_back(call);
  wait(guard, [&] {
    return std::all_of(queues_.begin(), queues_.end(), [&](const QueueState* queue) {
      return queue->works.empty() || queue->works.front()->grid.number >= now;
    });
  });
  waiting_calls_.erase(std::find(waiting_calls_.begin(), waiting_calls_.end(), call));
}

void Engine::preload(std::size_t code) {
  const Lock lock(mutex_);
  loaded_[code] = true;
}

void Engine::load(std::size_t code) {
  {
    const Lock lock(mutex_);
    if (!loaded_.emplace(code, false).second) return;
  }
  synchronize_device("the first launch of a kernel");
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
  return any || start_what_can();
}

/// Starts the first work of each queue, unless it must wait: for an event, for room, or because of
/// malice. A team starts when all its works can. True if there was one.
bool Engine::start_what_can() {
  bool any = false;
  for (bool again = true; again; any = any || again) {
    again = false;
    std::map<std::uint64_t, std::vector<Work*>> teams;
    for (const QueueState* queue : queues_) {
      if (queue->works.empty() || queue->works.front()->started) continue;
      Work& work = *queue->works.front();
      work.grid.held = held(*queue);
      if (work.grid.held != nullptr || (work.after && !work.after->done)) continue;
      if (work.team != 0)
        teams[work.team].push_back(&work);
      else
        again = start({&work}) || again;
    }
    for (const auto& [number, team] : teams) again = start(team) || again;
  }
  return any;
}

/// Why the first work of a queue must wait for other queues' work; null: it need not.
const char* Engine::held(const QueueState& queue) const {
  const int lanes = config_.malice.hardware_queues;
  const Work& work = *queue.works.front();
  for (const QueueState* other : queues_) {
    if (lanes == 0 || other == &queue || other->number % lanes != queue.number % lanes) continue;
    for (const auto& earlier : other->works) {
      const bool issued = earlier->started && earlier->grid.late == 0;
      const bool same_team = earlier->team != 0 && earlier->team == work.team;
      if (!issued && !same_team && earlier->grid.number < work.grid.number)
        return "is behind another stream's work in its hardware queue";
    }
  }
  return nullptr;
}

bool Engine::start(const std::vector<Work*>& team) {
  int blocks = 0, threads = 0;
  for (const Work* work : team) {
    blocks += work->grid.blocks;
    threads += work->grid.blocks * work->grid.threads;
  }
  const bool complete = static_cast<int>(team.size()) == team[0]->team_size;
  const bool fits = !team[0]->grid.together || scheduler().has_slots(blocks);
  if (!complete || !fits) {
    for (Work* work : team)
      work->grid.held = complete ? "finds too few slots free" : "cannot start without its team";
    return false;
  }
  if (!scheduler().has_room(threads)) return false;
  for (Work* work : team) {
    scheduler().start(work->grid);
    work->started = true;
  }
  return true;
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
  std::vector<Grid*> stuck = firsts([](const Work& work) { return work.started; });
  if (!closed && now - *quiet_since_ < config_.patience)
    std::erase_if(stuck, [](const Grid* grid) { return !doomed(*grid); });
  else if (!stuck.empty())
    std::ranges::copy(firsts([](const Work& work) { return work.grid.held != nullptr; }),
                      std::back_inserter(stuck));
  if (!stuck.empty()) drop(stuck);
  return !stuck.empty();
}

/// Of each queue, the first work, if it is such a one.
std::vector<Grid*> Engine::firsts(bool (*such)(const Work&)) const {
  std::vector<Grid*> grids;
  for (const QueueState* queue : queues_)
    if (!queue->works.empty() && such(*queue->works.front()))
      grids.push_back(&queue->works.front()->grid);
  return grids;
}

void Engine::drop(const std::vector<Grid*>& grids) {
  const auto report = std::make_shared<const Error>(stuck(grids, config_.seed, waiting_calls_));
  for (Grid* grid : grids) {
    QueueState& queue = queue_of(*grid);
    if (!queue.failure) queue.failure = report;
    if (!std::exchange(queue.works.front()->started, true)) scheduler().start(*grid);
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
