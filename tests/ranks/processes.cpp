#include "tests/ranks/processes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <string_view>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"

namespace treering::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view rank_option = "--treering-rank-program";
constexpr int status_of_error = 3;

std::map<std::string, RankProgram>& programs() {
  static std::map<std::string, RankProgram> all;
  return all;
}

/// Waits until a descriptor is readable. False if patience is at an end.
bool await_readable(int descriptor, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd polled{descriptor, POLLIN, 0};
    const int ready = poll(&polled, 1, static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw system_error("wait for a rank (poll)");
  }
}

struct Pipe {
  UniqueFd reading, writing;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error("make a pipe");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// The variables of this process, with additions.
std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
  std::vector<std::string> all = additions;  // getenv() finds the first
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& s : strings) all.push_back(s.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

RegisterProgram::RegisterProgram(const char* name, RankProgram program) {
  programs()[name] = std::move(program);
}

void RankProcess::say(const std::string& line) const { std::cout << line << std::endl; }

std::string RankProcess::hear() const {
  std::string line;
  std::getline(std::cin, line);
  return line;
}

bool run_as_rank(int argc, char** argv, int& status) {
  if (argc != 8 || argv[1] != rank_option) return false;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != std::stoi(argv[7])) _exit(1);  // the test ended before the line above
  const RankProcess self{UniqueId::parse(argv[3]), std::stoi(argv[4]), std::stoi(argv[5]), argv[6]};
  status = 0;
  try {
    programs().at(argv[2])(self);
  } catch (const Error& error) {
    self.say(outcome(error).line());
    status = status_of_error;
  }
  return true;
}

Job::Job(const std::string& program, int size, const JobOptions& options)
    : ranks_(static_cast<std::size_t>(size)) {
  for (int rank = 0; rank < size; ++rank) start(program, rank, options);
}

void Job::start(const std::string& program, int rank, const JobOptions& options) {
  Pipe to = make_pipe(), from = make_pipe();
  std::vector<std::string> words{
      "rank_tests",      std::string(rank_option),   program,
      options.id.text(), fmt::format("{}", size()),  fmt::format("{}", rank),
      options.argument,  fmt::format("{}", getpid())};
  std::vector<std::string> additions = options.environment;
  if (options.environment_of)
    for (const std::string& variable : options.environment_of(rank)) additions.push_back(variable);
  std::vector<std::string> variables = environment_with(additions);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.reading.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from.writing.get(), STDOUT_FILENO);
  Rank& started = at(rank);
  const int error = posix_spawn(&started.pid, "/proc/self/exe", &actions, nullptr,
                                pointers(words).data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0) throw system_error("start a rank's process");
  started.input = to.writing.release();
  started.output = from.reading.release();
}

Job::~Job() {
  for (Rank& rank : ranks_) {
    if (!rank.ended && rank.pid > 0) {
      ::kill(rank.pid, SIGKILL);
      waitpid(rank.pid, nullptr, 0);
    }
    if (rank.input >= 0) close(rank.input);
    if (rank.output >= 0) close(rank.output);
  }
}

void Job::kill(int rank, int signal) {
  if (!at(rank).ended && ::kill(at(rank).pid, signal) != 0) throw system_error("signal a rank");
}

void Job::tell(int rank, const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = write(at(rank).input, text.data() + done, text.size() - done);
    if (written < 0 && errno == EPIPE) return;  // hear() will notice
    if (written < 0 && errno != EINTR) throw system_error("tell a rank");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

void Job::tell_all(const std::string& line) {
  for (int rank = 0; rank < size(); ++rank) tell(rank, line);
}

std::string Job::hear(int rank) {
  Rank& from = at(rank);
  const auto deadline = Clock::now() + patience();
  for (;;) {
    if (const auto end = from.heard.find('\n'); end != std::string::npos) {
      std::string line = from.heard.substr(0, end);
      from.heard.erase(0, end + 1);
      return line;
    }
    if (!await_readable(from.output, deadline))
      throw std::runtime_error(
          fmt::format("rank {} said nothing for {} s", rank, patience().count()));
    char piece[4096];
    const ssize_t got = read(from.output, piece, sizeof piece);
    if (got > 0) from.heard.append(piece, static_cast<std::size_t>(got));
    if (got == 0)
      throw std::runtime_error(
          fmt::format("rank {} ended with status {}; a line was expected", rank, wait(rank)));
    if (got < 0 && errno != EINTR) throw system_error("hear a rank");
  }
}

void Job::expect_all(const std::string& line) {
  for (int rank = 0; rank < size(); ++rank) EXPECT_EQ(hear(rank), line) << "rank " << rank;
}

std::vector<Outcome> Job::hear_outcomes() {
  std::vector<Outcome> all;
  for (int rank = 0; rank < size(); ++rank) all.push_back(hear_outcome(rank));
  return all;
}

int Job::wait(int rank) {
  Rank& awaited = at(rank);
  if (!awaited.ended) {
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, awaited.pid, 0)));
    if (!process) throw system_error("watch a rank (pidfd_open)");
    if (!await_readable(process.get(), Clock::now() + patience()))
      throw std::runtime_error(
          fmt::format("rank {} did not end within {} s", rank, patience().count()));
    int status = 0;
    while (waitpid(awaited.pid, &status, 0) < 0 && errno == EINTR) continue;
    awaited.status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    awaited.ended = true;
  }
  return awaited.status;
}

std::chrono::seconds Job::patience() { return std::chrono::seconds(60); }

}  // namespace treering::test
