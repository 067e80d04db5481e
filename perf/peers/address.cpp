#include "perf/peers/address.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <random>

#include "base/system_error.hpp"

namespace treering::perf {
namespace {

/// The abstract name space: a zero byte, then the address.
struct Name {
  sockaddr_un address{};
  socklen_t length;

  explicit Name(const std::string& word) {
    address.sun_family = AF_UNIX;
    word.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + word.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

UniqueFd make_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) throw system_error("make a unix socket");
  return socket;
}

}  // namespace

Meeting open_meeting() {
  std::random_device random;
  Meeting meeting{make_socket(), fmt::format("treering-perf-{:08x}{:08x}", random(), random())};
  const Name name(meeting.address);
  constexpr int most_waiting = 4096;
  if (bind(meeting.socket.get(), name.get(), name.length) != 0 ||
      listen(meeting.socket.get(), most_waiting) != 0)
    throw system_error("listen for ranks");
  return meeting;
}

UniqueFd connect_to(const std::string& address) {
  UniqueFd socket = make_socket();
  const Name name(address);
  if (connect(socket.get(), name.get(), name.length) != 0)
    throw system_error("reach the command that measures");
  return socket;
}

}  // namespace treering::perf
