#include "transport/rendezvous/channel.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/system_error.hpp"

namespace treering {
namespace {

constexpr std::size_t most_descriptors = 253;  // that the kernel passes in one piece

union Control {
  cmsghdr header;  // for its alignment
  char bytes[CMSG_SPACE(most_descriptors * sizeof(int))];
};

/// Moves the descriptors that came with a piece of a message.
void collect_descriptors(msghdr& piece, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* item = CMSG_FIRSTHDR(&piece); item != nullptr; item = CMSG_NXTHDR(&piece, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    std::array<int, most_descriptors> received{};
    const std::size_t bytes = item->cmsg_len - CMSG_LEN(0);
    std::memcpy(received.data(), CMSG_DATA(item), bytes);
    for (std::size_t i = 0; i < bytes / sizeof(int); ++i) descriptors.emplace_back(received[i]);
  }
}

template <class T>
void append(std::vector<std::byte>& bytes, const T* values, std::size_t count) {
  const auto* const begin = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), begin, begin + count * sizeof(T));
}

}  // namespace

const char* name(Kind kind) noexcept {
  switch (kind) {
    case Kind::hello:
      return "hello";
    case Kind::welcome:
      return "welcome";
    case Kind::all_gather:
      return "all_gather";
    case Kind::descriptors:
      return "all_gather_descriptors";
    case Kind::barrier:
      return "barrier";
    case Kind::failed:
      return "failed";
  }
  return "nonsense";
}

SharedPacket pack(Kind kind, std::span<const std::byte> bytes, std::vector<int> descriptors) {
  auto packet = std::make_shared<Packet>();
  const Channel::Header header{kind, static_cast<std::uint32_t>(descriptors.size()), bytes.size()};
  packet->bytes.reserve(sizeof header + bytes.size());
  append(packet->bytes, &header, 1);
  append(packet->bytes, bytes.data(), bytes.size());
  packet->descriptors = std::move(descriptors);
  return packet;
}

SharedPacket pack(const Error& error) {
  const std::array<std::uint64_t, 2> head{static_cast<std::uint64_t>(error.code()),
                                          error.ranks().size()};
  std::vector<std::byte> bytes;
  append(bytes, head.data(), head.size());
  append(bytes, error.ranks().data(), error.ranks().size());
  append(bytes, error.what(), std::strlen(error.what()));
  return pack(Kind::failed, bytes);
}

Error unpack_error(const Message& message) {
  std::array<std::uint64_t, 2> head{};
  std::memcpy(head.data(), message.bytes.data(), sizeof head);
  std::vector<int> ranks(head[1]);
  const std::byte* const begin = message.bytes.data() + sizeof head;
  std::memcpy(ranks.data(), begin, ranks.size() * sizeof(int));
  const auto* const text = reinterpret_cast<const char*>(begin + ranks.size() * sizeof(int));
  const auto* const end =
      reinterpret_cast<const char*>(message.bytes.data() + message.bytes.size());
  return Error(static_cast<ErrorCode>(head[0]), std::string(text, end), std::move(ranks));
}

void Channel::close() noexcept {
  socket_.reset();
  outbox_.clear();
}

void Channel::flush() {
  while (open() && !outbox_.empty()) {
    const Packet& packet = *outbox_.front();
    const ssize_t sent = send_some(packet);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      outbox_.clear();  // the other end is gone, but what it said before has still to be read
      sent_bytes_ = sent_descriptors_ = 0;
      return;
    }
    sent_bytes_ += static_cast<std::size_t>(sent);
    if (sent_bytes_ < packet.bytes.size()) continue;
    outbox_.pop_front();
    sent_bytes_ = sent_descriptors_ = 0;
  }
}

/// Each portion of descriptors travels with a byte of the message.
ssize_t Channel::send_some(const Packet& packet) {
  const std::size_t portion =
      std::min(packet.descriptors.size() - sent_descriptors_, most_descriptors);
  iovec part{const_cast<std::byte*>(packet.bytes.data()) + sent_bytes_,
             portion != 0 ? 1 : packet.bytes.size() - sent_bytes_};
  msghdr piece{};
  piece.msg_iov = &part;
  piece.msg_iovlen = 1;
  Control control{};
  if (portion != 0) {
    piece.msg_control = control.bytes;
    piece.msg_controllen = CMSG_SPACE(portion * sizeof(int));
    cmsghdr* const item = CMSG_FIRSTHDR(&piece);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(portion * sizeof(int));
    std::memcpy(CMSG_DATA(item), packet.descriptors.data() + sent_descriptors_,
                portion * sizeof(int));
  }
  const ssize_t sent = sendmsg(socket_.get(), &piece, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) sent_descriptors_ += portion;
  if (sent < 0 &&
      errno == ETOOMANYREFS) {  // the user has too many descriptors under way: let some arrive
    const timespec nap{0, 1'000'000};
    nanosleep(&nap, nullptr);
    errno = EAGAIN;
  }
  return sent;
}

void Channel::read() {
  if (!open() || complete_) return;
  if (header_done_ < sizeof header_ && !read_into(&header_, sizeof header_, header_done_)) return;
  constexpr std::size_t longest_from_strangers = 4096;
  if (!trusted_ && (header_.bytes > longest_from_strangers || header_.descriptors != 0))
    return close();
  inbox_.kind = header_.kind;
  inbox_.bytes.resize(header_.bytes);
  if (!read_into(inbox_.bytes.data(), header_.bytes, content_done_)) return;
  if (inbox_.descriptors.size() != header_.descriptors)
    throw Error(
        ErrorCode::system,
        fmt::format(
            "received {} of {} descriptors of other ranks' memory: this process has reached its "
            "limit of open files, raise it (ulimit -Hn)",
            inbox_.descriptors.size(), header_.descriptors));
  complete_ = true;
}

/// Goes on reading; true when all is there. An end or an error closes the channel.
bool Channel::read_into(void* to, std::size_t bytes, std::size_t& done) {
  while (done < bytes) {
    iovec part{static_cast<std::byte*>(to) + done, bytes - done};
    Control control;
    msghdr piece{};
    piece.msg_iov = &part;
    piece.msg_iovlen = 1;
    piece.msg_control = control.bytes;
    piece.msg_controllen = sizeof control.bytes;
    const ssize_t got = recvmsg(socket_.get(), &piece, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0) {
      collect_descriptors(piece, inbox_.descriptors);
      done += static_cast<std::size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    close();
    return false;
  }
  return true;
}

Message Channel::take_message() {
  complete_ = false;
  header_done_ = content_done_ = 0;
  return std::exchange(inbox_, Message{});
}

bool serve(std::span<Channel> channels, const Deadline& deadline, int listener) {
  std::vector<pollfd> polled{{listener, POLLIN, 0}};
  polled.reserve(channels.size() + 1);
  for (const Channel& channel : channels) {
    const int events =
        (channel.message() != nullptr ? 0 : POLLIN) | (channel.flushed() ? 0 : POLLOUT);
    polled.push_back({events != 0 ? channel.descriptor() : -1, static_cast<short>(events), 0});
  }
  const int ready = poll(polled.data(), polled.size(), deadline.left_ms());
  if (ready < 0 && errno != EINTR) throw system_error("wait for the other ranks (poll)");
  if (ready <= 0) return !deadline.over();
  for (std::size_t i = 0; i < channels.size(); ++i) {
    if (polled[i + 1].revents == 0) continue;
    channels[i].flush();
    channels[i].read();
  }
  return true;
}

void flush_all(std::span<Channel> channels, const Deadline& deadline) {
  const auto busy = [](const Channel& channel) { return channel.open() && !channel.flushed(); };
  for (Channel& channel : channels) channel.flush();
  while (std::any_of(channels.begin(), channels.end(), busy) && serve(channels, deadline)) continue;
}

}  // namespace treering
