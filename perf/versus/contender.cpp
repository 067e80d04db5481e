#include "perf/versus/contender.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor_message.hpp"
#include "base/system_error.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

UniqueFd open_process(int pid) {
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(const UniqueFd& process) {
  pollfd ended{process.get(), POLLIN, 0};
  return !process || poll(&ended, 1, 0) > 0;
}

void await_end(const UniqueFd& process, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  pollfd ended{process.get(), POLLIN, 0};
  if (process) poll(&ended, 1, static_cast<int>(std::max<long>(left, 0)));
}

/// A process group of its own, nothing on standard input, everything printed into `output`.
int spawn(std::vector<std::string>& words, int output) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  errno = posix_spawn(&process, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return errno == 0 ? process : -1;
}

}  // namespace

Contender::Contender(std::string name, int ranks, milliseconds patience)
    : name_(std::move(name)),
      ranks_(ranks),
      patience_(patience),
      meeting_(open_meeting()),
      control_(ranks),
      output_(memfd_create("treering-versus", MFD_CLOEXEC)),
      members_(static_cast<std::size_t>(ranks)) {
  if (!output_) throw system_error("make room for what a peer prints");
  fcntl(output_.get(), F_SETFL, O_APPEND);
}

Contender::~Contender() { end(milliseconds(3000)); }

void Contender::launch(std::vector<std::string> words) {
  Member launcher;
  launcher.pid = spawn(words, output_.get());
  if (launcher.pid < 0) throw system_error(fmt::format("start {} ({})", name_, words[0]));
  launcher.process = open_process(launcher.pid);
  launchers_.push_back(std::move(launcher));
}

void Contender::meet(bool pin) {
  for (int ready = 0; ready < ranks_;) {
    await_one();
    accept_one();
    for (std::size_t i = strangers_.size(); i-- > 0;) admit(i, pin);
    for (Member& member : members_) {
      pollfd talks{member.socket.get(), POLLIN, 0};
      if (poll(&talks, 1, 0) <= 0) continue;
      const Answer answer = hear(member);
      if (answer.rank == 0) version_ = answer.text.data();
      ++ready;
    }
    const bool none_left = std::all_of(launchers_.begin(), launchers_.end(),
                                       [](const Member& m) { return has_ended(m.process); });
    if (ready < ranks_ && none_left)
      give_up("what starts it has ended before its ranks were there");
  }
}

/// Waits until anything happens to ranks that are not ready.
void Contender::await_one() {
  std::vector<pollfd> events{{meeting_.socket.get(), POLLIN, 0}};
  for (const Member& m : launchers_) events.push_back({m.process.get(), POLLIN, 0});
  for (const Member& m : strangers_) events.push_back({m.socket.get(), POLLIN, 0});
  for (const Member& m : members_) events.push_back({m.socket.get(), POLLIN, 0});
  if (poll(events.data(), events.size(), static_cast<int>(patience_.count())) == 0)
    give_up(fmt::format("it did not start within {} s", patience_.count() / 1e3));
}

void Contender::accept_one() {
  pollfd waiting{meeting_.socket.get(), POLLIN, 0};
  if (poll(&waiting, 1, 0) <= 0) return;
  Member stranger;
  stranger.socket = UniqueFd(accept4(meeting_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(stranger.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return;
  if (who.uid != getuid()) return;
  stranger.pid = who.pid;
  stranger.process = open_process(who.pid);
  strangers_.push_back(std::move(stranger));
}

/// A stranger that says hello becomes the member of that rank.
void Contender::admit(std::size_t which, bool pin) {
  pollfd talks{strangers_[which].socket.get(), POLLIN, 0};
  if (poll(&talks, 1, 0) <= 0) return;
  const Answer hello = hear(strangers_[which]);
  if (hello.rank < 0 || hello.rank >= ranks_ ||
      members_[static_cast<std::size_t>(hello.rank)].socket)
    give_up(fmt::format("a rank says that it is {} of {}", hello.rank, ranks_));
  Member& member = members_[static_cast<std::size_t>(hello.rank)];
  member = std::move(strangers_[which]);
  strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(which));
  Order join;
  join.kind = Order::Kind::join;
  join.ranks = ranks_;
  join.pin = pin;
  send_message(member.socket.get(), &join, sizeof join, control_.descriptor());
}

std::vector<Answer> Contender::ask(const Order& order) {
  for (const Member& member : members_) send_message(member.socket.get(), &order, sizeof order);
  std::vector<Answer> answers(members_.size());
  std::vector<pollfd> waiting;
  for (const Member& member : members_) waiting.push_back({member.socket.get(), POLLIN, 0});
  for (std::size_t left = members_.size(); left > 0;) {
    const int ready = poll(waiting.data(), waiting.size(), static_cast<int>(patience_.count()));
    if (ready == 0) give_up(fmt::format("it was silent for {} s", patience_.count() / 1e3));
    for (std::size_t i = 0; i < waiting.size() && ready > 0; ++i) {
      if (waiting[i].revents == 0) continue;
      answers[i] = hear(members_[i]);
      waiting[i].fd = -1;
      --left;
    }
  }
  return answers;
}

Answer Contender::hear(Member& member) {
  const auto rank = &member >= members_.data() && &member < members_.data() + members_.size()
                        ? fmt::format("rank {}", &member - members_.data())
                        : std::string("a rank");
  Answer answer;
  int unexpected = -1;
  const ssize_t got = receive_message(member.socket.get(), &answer, sizeof answer, unexpected);
  UniqueFd{unexpected}.reset();
  if (got == 0 || (got < 0 && errno == ECONNRESET)) give_up(rank + " ended");
  if (got != sizeof answer || answer.magic != protocol_magic || answer.text.back() != '\0')
    give_up(rank + " does not speak this version's protocol");
  if (answer.kind == Answer::Kind::failure)
    give_up(fmt::format("{}: {}", rank, answer.text.data()));
  return answer;
}

/// The end of what launcher and ranks have printed, as one line.
std::string Contender::last_words() const {
  constexpr off_t most = 300;
  const off_t size = lseek(output_.get(), 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::min(size, most)), '\0');
  const ssize_t got = pread(output_.get(), text.data(), text.size(), size - std::min(size, most));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void Contender::give_up(const std::string& what) {
  end(milliseconds(0));
  const std::string words = last_words();
  throw Error(ErrorCode::peer_lost,
              fmt::format("{}: {}{}", name_, what,
                          words.empty() ? "" : fmt::format("; it printed: {}", words)));
}

/// Ranks end at the end of their sockets; those that do not within `grace`, by force. Launchers end
/// when their ranks have, or are told to.
void Contender::end(milliseconds grace) noexcept {
  for (auto* ranks : {&members_, &strangers_})
    for (Member& rank : *ranks)
      if (grace.count() > 0) rank.socket.reset();
  auto deadline = Clock::now() + grace;
  for (auto* ranks : {&members_, &strangers_})
    for (Member& rank : *ranks) {
      await_end(rank.process, deadline);
      if (rank.process) syscall(SYS_pidfd_send_signal, rank.process.get(), SIGKILL, nullptr, 0);
    }
  meeting_.socket.reset();
  deadline = Clock::now() + milliseconds(2000);
  if (grace.count() == 0)
    for (const Member& launcher : launchers_) kill(-launcher.pid, SIGTERM);
  for (const Member& launcher : launchers_) {
    await_end(launcher.process, deadline);
    kill(-launcher.pid, SIGKILL);
    waitpid(launcher.pid, nullptr, 0);
  }
  launchers_.clear();
  strangers_.clear();
  for (Member& member : members_) member = {};
}

std::vector<int> Contender::processes() const {
  std::vector<int> all;
  for (const auto* some : {&members_, &launchers_})
    for (const Member& member : *some) all.push_back(member.pid);
  return all;
}

}  // namespace treering::perf
