#pragma once

// Whole messages, bytes and descriptors, over a unix stream socket that never blocks.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "transport/rendezvous/deadline.hpp"
#include "treering/error.hpp"

namespace treering {

enum class Kind : std::uint32_t { hello = 1, welcome, all_gather, descriptors, barrier, failed };
const char* name(Kind) noexcept;

struct Message {
  Kind kind;
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> descriptors;
};

/// A message on its way out. Several channels may send the same one; the descriptors stay the
/// caller's.
struct Packet {
  std::vector<std::byte> bytes;  // header and content
  std::vector<int> descriptors;
};
using SharedPacket = std::shared_ptr<const Packet>;

/// At most one descriptor for each byte of the content.
SharedPacket pack(Kind, std::span<const std::byte> bytes, std::vector<int> descriptors = {});

/// An Error as a message, and back.
SharedPacket pack(const Error&);
Error unpack_error(const Message&);

class Channel {
 public:
  Channel() = default;
  /// Until trust() is called, a message that is long or brings descriptors closes the channel.
  explicit Channel(UniqueFd socket) : socket_(std::move(socket)) {}
  void trust() noexcept { trusted_ = true; }

  int descriptor() const noexcept { return socket_.get(); }
  /// False if there is no socket, or the other end is gone and everything it sent has been read.
  bool open() const noexcept { return static_cast<bool>(socket_); }
  void close() noexcept;

  /// Queues a message. If the other end is gone it will be dropped; reading tells.
  void post(SharedPacket packet) { outbox_.push_back(std::move(packet)); }
  bool flushed() const noexcept { return outbox_.empty(); }
  /// Sends what the socket takes now.
  void flush();

  /// Reads until a whole message is here, or nothing more is. Throws Error{system} if descriptors
  /// were lost.
  void read();
  /// The message that waits to be taken, or null.
  const Message* message() const noexcept { return complete_ ? &inbox_ : nullptr; }
  Message take_message();

 private:
  struct Header {
    Kind kind;
    std::uint32_t descriptors;
    std::uint64_t bytes;
  };
  friend SharedPacket pack(Kind, std::span<const std::byte>, std::vector<int>);

  ssize_t send_some(const Packet&);
  bool read_into(void* to, std::size_t bytes, std::size_t& done);

  UniqueFd socket_;
  bool trusted_ = false;
  std::deque<SharedPacket> outbox_;
  std::size_t sent_bytes_ = 0, sent_descriptors_ = 0;  // of the first in the outbox
  Header header_{};
  std::size_t header_done_ = 0, content_done_ = 0;
  Message inbox_{};
  bool complete_ = false;
};

/// Waits until something can be sent, or read where no message is waiting to be taken, and does so.
/// `listener`: one more descriptor to wait for, or -1. False if the deadline has passed.
bool serve(std::span<Channel>, const Deadline&, int listener = -1);

/// Sends everything that is queued, if it can be done by the deadline.
void flush_all(std::span<Channel>, const Deadline&);

}  // namespace treering
