#pragma once

// The engine of the `simt` execution: what is launched on queues, and who runs it.
//
// Nothing runs until somebody waits for something: SimtQueue::synchronize(),
// SimtEvent::synchronize(), run_all(). The thread that waits becomes the *runner* and runs
// everyone's kernels until what it waits for has happened; others who wait meanwhile sleep, and one
// of them takes over. (done() and idle() run some steps, so that asking again and again leads
// somewhere.) So it is always one OS thread that runs, and if a single thread launches and waits, a
// seed replays the run.
//
//     launch, copy, record ──► queue ──► its first item runs, as a grid ──► scheduler
//
// Everything in a queue is a kernel: copies, records and waits are kernels of a single thread.
//
// A kernel that can never complete is *stuck*: its threads are unwound, and whoever waits for its
// queue, or for an event behind it, gets an Error{stuck} that says for each block where its threads
// are. What follows in the queue runs as if nothing had been. A kernel is stuck if
//   - all threads of a block stand at barriers that do not open; or
//   - everyone does nothing but poll flags, and either run_all() promised that nobody else will
//     raise one, or it has been so for Config::patience.
// A kernel that spins without pause() cannot be interrupted.
//
// With Malice, work waits for more than its queue: for slots, or for earlier work of other queues
// that share a hardware queue; and some calls of the host wait until kernels have ended. If nothing
// goes on because of that, the report says who waits for what, and what waits is dropped as well.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/exec/simt/grid.hpp"
#include "kernels/exec/simt/malice.hpp"
#include "treering/error.hpp"

namespace treering::simt {

struct Config {
  std::uint64_t seed = 1;
  int threads = 32;  ///< of a block, for kernels launched as a Launch
  std::chrono::milliseconds patience{2000};
  Malice malice{};
};

/// Seeds the scheduler anew, too. Call it while nothing runs. Throws Error{invalid_argument}.
void configure(const Config&);
Config config();

/// Runs everything that has been launched. The caller promises that no other thread of the process
/// will raise a flag or launch anything meanwhile, so that stuck kernels are found at once. Throws
/// Error{stuck}, for all queues together.
void run_all();

/// A digest of all decisions since configure(): equal if the runs were equal.
std::uint64_t trace();

/// How a kernel is launched. `rank` is for reports.
struct Shape {
  int blocks = 1, threads = 32;
  int rank = -1;
};

// ---- the rest is for SimtQueue and SimtEvent

using Failure = std::shared_ptr<const Error>;  ///< null: none

/// One record of an event.
struct Record {
  Tag tag;
  bool done = false;
  Failure failure;
};

/// An item of a queue. Made by the thread that launches.
struct Work {
  Grid grid{};
  bool started = false;
  std::uint64_t team = 0;  ///< works with the same one start at once; 0: alone
  int team_size = 1;
  std::shared_ptr<const Record> after;  ///< starts when this is done; null: at once
  std::shared_ptr<Record> completes;    ///< null: none
};

struct QueueState {
  int number = 0;  ///< counts the queues
  Tag tag;
  std::deque<std::unique_ptr<Work>> works;
  Failure failure;  ///< since the last synchronize()
};

/// Throws Error{invalid_argument} for a shape that cannot be.
std::unique_ptr<Work> make_work(QueueState&, const Shape&, Kernel);

/// All state is under one lock, which the runner gives up while threads of kernels run.
class Engine {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using Condition = std::function<bool()>;  ///< asked under the lock

  Lock lock() { return Lock(mutex_); }

  void configure(const Config&);
  Config config();

  void add(QueueState&);
  void remove(QueueState&);
  void enqueue(QueueState&, std::unique_ptr<Work>);
  /// Works that start together. Throws Error{invalid_argument} if they never could.
  void enqueue_team(std::span<QueueState* const>, std::vector<std::unique_ptr<Work>>);

  /// What a GPU may make wait for its kernels: with Malice::synchronizing, returns when all that
  /// has been launched has ended. `call` is for reports.
  void synchronize_device(const char* call);
  /// The code of a kernel is on the device from now on.
  void preload(std::size_t code);
  /// The same, at a kernel's first launch, as synchronize_device() does.
  void load(std::size_t code);

  /// Returns when done() is true. `closed`: nobody else will act.
  void wait(Lock&, const Condition& done, bool closed = false);
  /// Runs some steps if nobody runs. Returns done().
  bool ask(const Condition& done);
  void run_all();

 private:
  class Runner;

  bool turn(Lock&, std::uint64_t steps);
  void append(QueueState&, std::unique_ptr<Work>);
  bool start_what_can();
  const char* held(const QueueState&) const;
  bool start(const std::vector<Work*>& team);
  void retire(const Grid&);
  bool drop_stuck(bool closed);
  std::vector<Grid*> firsts(bool (*such)(const Work&)) const;
  void drop(const std::vector<Grid*>&);
  void rest(Lock&);
  QueueState& queue_of(const Grid&) const;

  std::mutex mutex_;
  std::condition_variable
      changed_;  // for those who wait: something completed, or there is no runner
  std::condition_variable arrived_;  // for the runner while it rests
  std::atomic<bool> news_{false};    // for the runner while it runs
  bool has_runner_ = false;
  Config config_;
  std::vector<QueueState*> queues_;
  std::uint64_t grids_ = 0;
  int queues_made_ = 0;
  std::unordered_map<std::size_t, bool> loaded_;  // kernels; true: at the start of the process
  std::vector<const char*> waiting_calls_;        // of the host, in synchronize_device()

  // Since when nothing but polls in vain has been seen, and how much had been done by then.
  std::optional<std::chrono::steady_clock::time_point> quiet_since_;
  std::uint64_t quiet_at_ = 0;
  int rests_ = 0;
};

/// The process's one engine.
Engine& engine();

}  // namespace treering::simt
