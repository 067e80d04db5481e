#include "perf/bench/message.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <type_traits>

namespace treering::perf {

static_assert(std::is_trivially_copyable_v<Message>);
static_assert(sizeof(Message) <= PIPE_BUF, "written whole or not at all");

Message Message::with_text(Kind kind, const std::string& text, bool consequence) {
  Message message;
  message.kind = kind;
  message.consequence = consequence;
  std::copy_n(text.data(), std::min(text.size(), message.text.size() - 1), message.text.data());
  return message;
}

void send(int pipe, const Message& message) noexcept {
  while (write(pipe, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

bool receive(int pipe, Message& message) noexcept {
  ssize_t got;
  do got = read(pipe, &message, sizeof message);
  while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof message);
}

}  // namespace treering::perf
