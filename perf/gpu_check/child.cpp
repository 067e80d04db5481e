#include "perf/gpu_check/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"

namespace treering::gpu_check {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a killed process may take to vanish: the driver tears its context down first.
constexpr std::chrono::seconds grace(5);

/// Waits until one of the descriptors has something to read; those below 0 never have. False at the
/// deadline.
bool await(std::span<pollfd> descriptors, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    const int ready = poll(descriptors.data(), descriptors.size(),
                           static_cast<int>(std::max<long>(left.count(), 0)));
    if (ready >= 0) return ready > 0;
    if (errno != EINTR) throw system_error("wait for a probe (poll)");
  }
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> all;
  for (std::string& s : strings) all.push_back(s.data());
  all.push_back(nullptr);
  return all;
}

/// This process's variables, but with the given ones.
std::vector<std::string> environment_with(const std::vector<std::string>& ours) {
  std::vector<std::string> all = ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view theirs(*entry);
    const std::string_view name = theirs.substr(0, theirs.find('=') + 1);
    const auto same = [&](const std::string& s) { return s.starts_with(name); };
    if (std::ranges::none_of(ours, same)) all.emplace_back(theirs);
  }
  return all;
}

pid_t spawn(const Command& command, int pipe, int log) {
  std::vector<std::string> words = command.words;
  std::vector<std::string> variables = environment_with(command.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, pipe, findings_descriptor);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t process = -1;
  const int error = posix_spawn(&process, words[0].c_str(), &actions, &attributes,
                                pointers(words).data(), pointers(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0) throw system_error("start " + words[0]);
  return process;
}

/// Kills what a probe has left behind: being their reaper, this process is their parent by now, or
/// will be when their parents are gone.
void kill_descendants() {
  constexpr int rounds = 50;
  constexpr std::chrono::milliseconds pause(10);
  for (int round = 0; round < rounds; ++round) {
    std::error_code error;
    bool any = false;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
      std::ifstream children(task.path() / "children");
      for (pid_t child = 0; children >> child; any = true) kill(child, SIGKILL);
    }
    if (!any) return;
    std::this_thread::sleep_for(pause);
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
}

/// The exit status of a process that has ended, or minus the signal that ended it.
int reap(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Whole lines from a pipe that never blocks.
class Lines {
 public:
  Lines(UniqueFd pipe, const std::function<void(const std::string&)>& line)
      : pipe_(std::move(pipe)), line_(line) {}

  int descriptor() const { return pipe_.get(); }
  /// Hands over what is there.
  void read() {
    std::array<char, 4096> piece;
    while (pipe_) {
      const ssize_t some = ::read(pipe_.get(), piece.data(), piece.size());
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) return;
      if (some == 0) pipe_.reset();  // all writers are gone
      text_.append(piece.data(), static_cast<std::size_t>(some));
      for (std::size_t end; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1))
        line_(text_.substr(0, end));
    }
  }

 private:
  UniqueFd pipe_;
  const std::function<void(const std::string&)>& line_;
  std::string text_;
};

/// Reads until the process has ended. False at the deadline.
bool listen(int process, Lines& lines, Clock::time_point deadline) {
  for (;;) {
    pollfd waited[] = {{process, POLLIN, 0}, {lines.descriptor(), POLLIN, 0}};
    const bool ready = await(waited, deadline);
    lines.read();
    if (waited[0].revents != 0) return true;
    if (!ready) return false;
  }
}

}  // namespace

Ending run_child(const Command& command, Clock::time_point deadline,
                 const std::function<void(const std::string&)>& line) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const UniqueFd log(open(command.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log) throw system_error("write " + command.log);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw system_error("make a pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  Lines lines{UniqueFd(ends[0]), line};
  // Away from the number that it gets in the child: put onto itself it would be closed there.
  constexpr int away = 16;
  UniqueFd writing(fcntl(ends[1], F_DUPFD_CLOEXEC, away));
  close(ends[1]);
  const pid_t process = spawn(command, writing.get(), log.get());
  writing.reset();
  const UniqueFd watched(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (!watched) throw system_error("watch a probe (pidfd_open)");

  Ending ending;
  ending.in_time = listen(watched.get(), lines, deadline);
  kill(-process, SIGKILL);  // the group: also what a probe that ended has left behind
  ending.gone = ending.in_time || listen(watched.get(), lines, Clock::now() + grace);
  if (ending.gone) ending.status = reap(process);
  kill_descendants();
  return ending;
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace treering::gpu_check
