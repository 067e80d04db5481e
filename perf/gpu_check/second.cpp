#include "perf/gpu_check/second.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor_message.hpp"
#include "base/system_error.hpp"
#include "perf/gpu_check/child.hpp"

namespace treering::gpu_check {

pid_t start(std::vector<std::string> words, int socket) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (socket >= 0) posix_spawn_file_actions_adddup2(&actions, socket, helper_descriptor);
  pid_t process = -1;
  const int error = posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  if (error != 0) throw system_error("start " + words[0]);
  return process;
}

Second::Second(const std::string& helper) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("make a socket");
  socket_.reset(ends[0]);
  // Away from the number that it gets there: put onto itself it would be closed.
  constexpr int away = 16;
  const UniqueFd theirs(fcntl(ends[1], F_DUPFD_CLOEXEC, away));
  close(ends[1]);
  process_ = start({own_path(), "--helper", helper, "--parent", fmt::format("{}", getpid())},
                   theirs.get());
}

void Second::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

void send(int socket, const void* bytes, std::size_t size, int descriptor) {
  if (!send_message(socket, bytes, size, descriptor)) throw system_error("write to a process");
}

int receive(int socket, void* bytes, std::size_t size) {
  constexpr int patience_ms = 10'000;
  pollfd waited{socket, POLLIN, 0};
  if (poll(&waited, 1, patience_ms) <= 0)
    throw Error(ErrorCode::timeout, "the second process said nothing for 10 s");
  int descriptor = -1;
  if (receive_message(socket, bytes, size, descriptor) != static_cast<ssize_t>(size))
    throw Error(ErrorCode::peer_lost, "the second process ended; the log may say why");
  return descriptor;
}

}  // namespace treering::gpu_check
