#include "perf/bench/workers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/exec/device.hpp"
#include "perf/bench/failures.hpp"
#include "perf/bench/pin.hpp"
#include "perf/bench/rank.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;

/// How long the other ranks may take to end by themselves after a failure.
constexpr auto grace = std::chrono::milliseconds(1500);

/// One rank, seen from the command.
struct Worker {
  int pipe = -1;  // the reading end; -1: the rank has ended
  pid_t process = -1;
  std::thread thread;
  bool accounted = false;  // it said that it is done, or why it failed
};

struct Pipe {
  int reading, writing;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorCode::system,
                fmt::format("No pipe for a rank: {}. Try fewer ranks, or raise `ulimit -n`.",
                            std::strerror(errno)));
  return {ends[0], ends[1]};
}

/// Runs `body`, and tells the command how it ended.
template <class Body>
void report_end(Control& control, int pipe, Body body) {
  using Kind = Message::Kind;
  const auto failed = [&](const char* what, bool consequence) {
    control.stop();
    send(pipe, Message::with_text(Kind::failure, what, consequence));
  };
  try {
    body();
    send(pipe, Message::with_text(Kind::done, ""));
  } catch (const Stopped& stopped) {
    failed(stopped.what(), true);
  } catch (const Error& error) {
    failed(error.what(),
           error.code() == ErrorCode::peer_lost || error.code() == ErrorCode::aborted);
  } catch (const std::exception& error) {
    failed(error.what(), false);
  }
}

void run_rank(const RankBody& body, Communicator& comm, Control& control, int pipe) {
  send(pipe, Message::with_text(Message::Kind::hello, device().describe()));
  control.barrier();
  body(comm, control, pipe);
}

/// All ranks of one run. Destruction ends those that are left.
class Workers {
 public:
  Workers(const Options& options, const RankBody& body)
      : options_(options),
        body_(body),
        control_(options.ranks),
        workers_(static_cast<std::size_t>(options.ranks)) {
    const UniqueId id = UniqueId::create();
    std::copy(id.bytes().begin(), id.bytes().end(), control_.note().begin());
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers();

  void start_processes(const std::vector<std::string>& command_line);
  void start_threads();
  /// Hears the ranks until all have ended, or are ended because one has failed.
  void hear(const Listener&);
  const Failures& failures() const { return failures_; }

 private:
  using Kind = Message::Kind;

  void take(std::size_t rank, const Message&, const Listener&);
  void ended(std::size_t rank);
  void fail(std::size_t rank, const std::string& text, bool consequence);
  int patience() const;
  void give_up();

  const Options& options_;
  const RankBody& body_;
  Control control_;
  std::vector<Communicator> comms_;  // of threads
  std::vector<Worker> workers_;
  std::vector<RankPlace> places_;
  std::size_t hellos_ = 0;
  Failures failures_;
  std::optional<Clock::time_point> deadline_;  // since the first failure
};

void Workers::start_processes(const std::vector<std::string>& command_line) {
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Worker& worker = workers_[static_cast<std::size_t>(rank)];
    const auto [reading, writing] = make_pipe();
    worker.pipe = reading;
    std::vector<std::string> words = command_line;
    words.emplace_back("--worker");
    words.push_back(fmt::format("{}:{}:{}:{}", rank, control_.descriptor(), writing, getpid()));
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // A descriptor put onto itself is inherited.
    posix_spawn_file_actions_adddup2(&actions, control_.descriptor(), control_.descriptor());
    posix_spawn_file_actions_adddup2(&actions, writing, writing);
    const int error =
        posix_spawn(&worker.process, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(writing);
    if (error != 0) {
      worker.process = -1;
      throw Error(ErrorCode::system, fmt::format("The process of rank {} cannot be started: {}.",
                                                 rank, std::strerror(error)));
    }
  }
}

void Workers::start_threads() {
  comms_ = Communicator::create_local(options_.ranks, communicator_options(options_));
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const auto [reading, writing] = make_pipe();
    workers_[rank].pipe = reading;
    workers_[rank].thread = std::thread([this, rank, pipe = writing] {
      Communicator& comm = comms_[rank];
      report_end(control_, pipe, [&] {
        try {
          if (options_.pin) pin_to_share(comm.rank(), options_.ranks);
          run_rank(body_, comm, control_, pipe);
        } catch (...) {
          comm.abort();
          throw;
        }
      });
      close(pipe);
    });
  }
}

void Workers::hear(const Listener& listener) {
  places_.resize(workers_.size());
  std::vector<pollfd> pipes(workers_.size());
  for (std::size_t left = workers_.size(); left > 0;) {
    for (std::size_t i = 0; i < pipes.size(); ++i) pipes[i] = {workers_[i].pipe, POLLIN, 0};
    const int ready = poll(pipes.data(), pipes.size(), patience());
    if (ready == 0) return give_up();
    // Rank 0 last, one message of each: so nobody's hello is read after the first row.
    for (std::size_t i = pipes.size(); i-- > 0 && ready > 0;) {
      if (pipes[i].revents == 0) continue;
      Message message;
      if (receive(pipes[i].fd, message)) {
        take(i, message, listener);
      } else {
        ended(i);
        --left;
      }
    }
  }
}

/// Milliseconds until ranks are ended by force; -1: for ever.
int Workers::patience() const {
  if (!deadline_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

void Workers::take(std::size_t rank, const Message& message, const Listener& listener) {
  switch (message.kind) {
    case Kind::hello:
      places_[rank] = {options_.threads ? getpid() : workers_[rank].process, message.text.data()};
      if (++hellos_ == workers_.size()) listener.started(places_);
      break;
    case Kind::row:
      listener.row(message);
      break;
    case Kind::failure:
      fail(rank, message.text.data(), message.consequence);
      break;
    case Kind::done:
      workers_[rank].accounted = true;
      break;
  }
}

void Workers::fail(std::size_t rank, const std::string& text, bool consequence) {
  workers_[rank].accounted = true;
  failures_.add(static_cast<int>(rank), text, consequence);
  control_.stop();
  if (!deadline_) deadline_ = Clock::now() + grace;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("its process was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return fmt::format("its process ended with status {} before it was done", WEXITSTATUS(status));
}

/// Called at the end of the rank's pipe: its process or thread has ended, or is about to.
void Workers::ended(std::size_t rank) {
  Worker& worker = workers_[rank];
  close(worker.pipe);
  worker.pipe = -1;
  if (worker.thread.joinable()) worker.thread.join();
  if (worker.process < 0) return;
  int status = 0;
  while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
  }
  worker.process = -1;
  if (!worker.accounted) fail(rank, describe_status(status), false);
}

/// Ranks are left that do not end by themselves. Processes are killed by the destructor; a thread
/// can be ended only with its process.
void Workers::give_up() {
  if (!options_.threads) return;
  fmt::print(stderr, "treering: {}\nThe other ranks do not end; giving up.\n", failures_.text());
  std::_Exit(1);
}

Workers::~Workers() {
  control_.stop();
  for (Worker& worker : workers_) {
    if (worker.process > 0) kill(worker.process, SIGKILL);
    if (worker.process > 0) waitpid(worker.process, nullptr, 0);
    if (worker.thread.joinable()) worker.thread.join();
    if (worker.pipe >= 0) close(worker.pipe);
  }
}

}  // namespace

void run_ranks(const Options& options, const RankBody& body,
               const std::vector<std::string>& command_line, const Listener& listener) {
  Workers workers(options, body);
  options.threads ? workers.start_threads() : workers.start_processes(command_line);
  workers.hear(listener);
  if (!workers.failures().empty())
    throw Error(ErrorCode::system, workers.failures().text(), workers.failures().ranks());
}

int run_worker(const Options& options, const RankBody& body, const std::string& seat) {
  int rank = 0, memory = 0, pipe = 0, parent = 0;
  if (std::sscanf(seat.c_str(), "%d:%d:%d:%d", &rank, &memory, &pipe, &parent) != 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return 1;  // it was gone before the line above
  Control control = Control::inherited(memory);
  bool failed = true;
  report_end(control, pipe, [&] {
    if (options.pin) pin_to_share(rank, options.ranks);
    Communicator comm = Communicator::create(UniqueId::from_bytes(control.note().data()),
                                             options.ranks, rank, communicator_options(options));
    run_rank(body, comm, control, pipe);
    failed = false;
  });
  return failed ? 1 : 0;
}

}  // namespace treering::perf
