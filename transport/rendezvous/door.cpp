#include "transport/rendezvous/door.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/rank_list.hpp"
#include "base/system_error.hpp"

namespace treering {
namespace {

struct Address {
  sockaddr_un socket{};
  socklen_t length;

  explicit Address(const Invitation& invitation) {
    const std::string name = invitation.socket_name();
    socket.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(),
              socket.sun_path + 1);  // after a zero: the abstract name space
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

UniqueFd create_socket() {
  UniqueFd created(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!created) throw system_error("create a socket");
  return created;
}

uid_t user_at_the_other_end(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    throw system_error("see who is at the other end of a socket (SO_PEERCRED)");
  return credentials.uid;
}

std::string_view text(const std::array<char, 24>& version) {
  return {version.data(), strnlen(version.data(), version.size())};
}

/// Compares all bytes, however early they differ: time tells nothing of the secret.
bool same_secret(const Hello& a, const Hello& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.secret.size(); ++i)
    difference |= static_cast<unsigned>(a.secret[i] ^ b.secret[i]);
  return difference == 0;
}

Error out_of_range(int rank, int world_size) {
  return Error(ErrorCode::invalid_argument,
               fmt::format("rank {} is out of range: there are {} ranks, numbered from 0 to {}",
                           rank, world_size, world_size - 1),
               {rank});
}

/// Rank 0 at the open door.
class Reception {
 public:
  Reception(const Invitation& invitation, int world_size, UniqueFd listener,
            std::chrono::milliseconds timeout, const Look& look)
      : mine_(make_hello(invitation, world_size, 0)),
        listener_(std::move(listener)),
        timeout_(timeout),
        deadline_(timeout, look),
        seats_(static_cast<std::size_t>(world_size), nobody) {}

  std::vector<Channel> receive() {
    try {
      await_all();
    } catch (const Error& error) {
      turn_away(error);
      throw;
    }
    return welcome();
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  void await_all() {
    while (come_ + 1 < seats_.size()) {
      if (!serve(visitors_, deadline_, listener_.get())) throw late();
      admit();
      for (std::size_t i = 0; i < visitors_.size(); ++i) hear(i);
      forget_strangers();
    }
  }

  std::vector<Channel> welcome() {
    listener_.reset();  // before the welcome: who comes now belongs to another start
    std::vector<Channel> channels(seats_.size());
    for (std::size_t rank = 1; rank < seats_.size(); ++rank) {
      channels[rank] = std::move(visitors_[seats_[rank]]);
      channels[rank].post(pack(Kind::welcome, {}));
    }
    flush_all(channels, deadline_);
    return channels;
  }

  /// Tells everyone who is here or comes within a moment, heard or not.
  void turn_away(const Error& error) noexcept try {
    // Who looks around sees it there.
    const bool waited_enough = error.code() == ErrorCode::timeout || deadline_.looks();
    const Deadline moment(waited_enough ? std::chrono::milliseconds{0} : grace);
    const SharedPacket news = pack(error);
    std::size_t told = 0;
    do {
      admit();
      for (; told < visitors_.size(); ++told) visitors_[told].post(news);
    } while (told + 1 < seats_.size() && serve(visitors_, moment, listener_.get()));
    flush_all(visitors_, Deadline(grace));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // The first error is the one that counts.
  }

  void admit() {
    for (;;) {
      UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (!socket && errno == EAGAIN) return;
      if (!socket) throw system_error("receive the other ranks (accept)");
      if (user_at_the_other_end(socket.get()) != geteuid()) continue;
      visitors_.emplace_back(std::move(socket));
      ranks_.push_back(0);
    }
  }

  /// A visitor's hello, or whatever else happened to it.
  void hear(std::size_t visitor) {
    Channel& channel = visitors_[visitor];
    const int rank = ranks_[visitor];
    if (rank != 0 && channel.message() != nullptr) {
      static_cast<void>(deadline_.over());  // what this rank sees itself it says in its own words
      throw unpack_error(channel.take_message());
    }
    if (rank != 0 && !channel.open())
      throw Error(
          ErrorCode::peer_lost,
          fmt::format(
              "rank {} ended during start-up, before all others had come; look at its output",
              rank),
          {rank});
    if (rank != 0 || channel.message() == nullptr) return;
    const Message message = channel.take_message();
    Hello hello{};
    if (message.kind != Kind::hello || message.bytes.size() < sizeof hello) return channel.close();
    std::memcpy(&hello, message.bytes.data(), sizeof hello);
    if (!same_secret(hello, mine_)) return channel.close();
    check(hello);
    channel.trust();
    ranks_[visitor] = hello.rank;
    seats_[static_cast<std::size_t>(hello.rank)] = visitor;
    ++come_;
  }

  void check(const Hello& hello) const {
    const int rank = hello.rank, world_size = mine_.world_size;
    if (hello.version != mine_.version)
      throw Error(ErrorCode::mismatch,
                  fmt::format("rank {} uses Treering {}, rank 0 uses {}; give all ranks the same",
                              rank, text(hello.version), text(mine_.version)),
                  {rank});
    if (hello.world_size != world_size)
      throw Error(
          ErrorCode::mismatch,
          fmt::format(
              "rank {} says {} ranks, rank 0 says {}; start all with the same number of ranks",
              rank, hello.world_size, world_size),
          {rank});
    if (rank < 0 || rank >= world_size) throw out_of_range(rank, world_size);
    if (rank == 0 || seats_[static_cast<std::size_t>(rank)] != nobody)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("two processes or threads say that they are rank {}; give each a "
                              "number of its own, and "
                              "each job a unique id of its own",
                              rank),
                  {rank});
  }

  void forget_strangers() {
    for (std::size_t i = visitors_.size(); i-- > 0;) {
      if (visitors_[i].open()) continue;
      visitors_.erase(visitors_.begin() + static_cast<std::ptrdiff_t>(i));
      ranks_.erase(ranks_.begin() + static_cast<std::ptrdiff_t>(i));
      for (std::size_t& seat : seats_)
        if (seat != nobody && seat > i) --seat;
    }
  }

  Error late() const {
    std::vector<int> missing;
    for (std::size_t rank = 1; rank < seats_.size(); ++rank)
      if (seats_[rank] == nobody) missing.push_back(static_cast<int>(rank));
    const bool one = missing.size() == 1;
    return Error(
        ErrorCode::timeout,
        fmt::format(
            "waited {} for all {} ranks: {} {} not come; {} running, on this machine, and with "
            "the same unique id?",
            in_words(timeout_), seats_.size(), rank_list(missing), one ? "has" : "have",
            one ? "is it" : "are they"),
        missing);
  }

  const Hello mine_;
  UniqueFd listener_;
  const std::chrono::milliseconds timeout_;
  const Deadline deadline_;
  std::vector<Channel> visitors_;
  std::vector<int> ranks_;          // of each visitor; 0: has not said
  std::vector<std::size_t> seats_;  // by rank: which visitor it is
  std::size_t come_ = 0;
};

Error not_there(int rank, std::chrono::milliseconds timeout) {
  return Error(
      ErrorCode::timeout,
      fmt::format(
          "rank {} waited {} for rank 0, which does not answer: is rank 0 running, on this machine "
          "(in "
          "the same network namespace, if in containers), and is the unique id the same? An id "
          "serves for one start",
          rank, in_words(timeout)),
      {0});
}

/// Waits until rank 0 answers, which it does once all have come.
Message await_welcome(std::vector<Channel>& door, int rank, std::chrono::milliseconds timeout,
                      const Look& look) {
  // Rank 0 has been waiting for longer than this rank, so its time is over first, and it tells.
  const Deadline deadline(timeout + grace, look);
  Channel& channel = door.front();
  try {
    while (channel.message() == nullptr) {
      if (!channel.open())
        throw Error(
            ErrorCode::peer_lost,
            fmt::format("rank 0 turned rank {} away or ended during start-up; look at its output, "
                        "and whether another process is rank {} as well",
                        rank, rank),
            {0});
      if (!serve(door, deadline)) throw not_there(rank, timeout);
    }
  } catch (const Error& error) {  // rank 0 shall hear why this one goes
    if (channel.open()) channel.post(pack(error));
    flush_all(door, Deadline(grace));
    throw;
  }
  return channel.take_message();
}

/// Tries again and again, with growing naps; nothing if nobody listens until the deadline.
UniqueFd connect_to(const Address& address, const Deadline& deadline) {
  constexpr long first_nap_us = 200, longest_nap_us = 20'000;
  UniqueFd socket = create_socket();
  for (long nap_us = first_nap_us;; nap_us = std::min(2 * nap_us, longest_nap_us)) {
    if (connect(socket.get(), address.get(), address.length) == 0) return socket;
    // Refused: not there yet. Again: there is a crowd at the door.
    if (errno != ECONNREFUSED && errno != EAGAIN && errno != EINTR)
      throw system_error("reach rank 0 (connect)");
    if (deadline.over()) return UniqueFd();
    const timespec nap{0, nap_us * 1000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

Hello make_hello(const Invitation& invitation, int world_size, int rank) {
  Hello hello{};
  const auto secret = invitation.secret();
  std::copy(secret.begin(), secret.end(), hello.secret.begin());
  constexpr std::string_view version = TREERING_VERSION;
  static_assert(version.size() < sizeof hello.version);
  std::copy(version.begin(), version.end(), hello.version.begin());
  hello.rank = rank;
  hello.world_size = world_size;
  return hello;
}

std::optional<std::vector<Channel>> open_door(const Invitation& invitation, int world_size,
                                              std::chrono::milliseconds timeout, const Look& look) {
  const Address address(invitation);
  UniqueFd listener = create_socket();
  if (bind(listener.get(), address.get(), address.length) != 0) {
    if (errno == EADDRINUSE) return std::nullopt;
    throw system_error("open a socket for the other ranks (bind)");
  }
  if (listen(listener.get(), 4096) != 0)
    throw system_error("open a socket for the other ranks (listen)");
  Reception reception(invitation, world_size, std::move(listener), timeout, look);
  return reception.receive();
}

Channel knock(const Invitation& invitation, int world_size, int rank,
              std::chrono::milliseconds timeout, const Look& look) {
  UniqueFd socket = connect_to(Address(invitation), Deadline(timeout, look));
  if (!socket)
    throw rank < 0 || rank >= world_size ? out_of_range(rank, world_size)
                                         : not_there(rank, timeout);
  if (user_at_the_other_end(socket.get()) != geteuid())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "rank {} and rank 0 are run by different users (ids {} and {}); start them as one",
            rank, geteuid(), user_at_the_other_end(socket.get())),
        {rank});
  std::vector<Channel> door(1);
  Channel& channel = door[0] = Channel(std::move(socket));
  channel.trust();
  const Hello hello = make_hello(invitation, world_size, rank);
  channel.post(pack(Kind::hello, std::as_bytes(std::span(&hello, 1))));
  const Message answer = await_welcome(door, rank, timeout, look);
  if (answer.kind == Kind::failed) throw unpack_error(answer);
  return std::move(channel);
}

}  // namespace treering
