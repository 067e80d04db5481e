#pragma once

// Point-to-point messages: what lies in memory. Each pair of ranks has, per direction, two lanes
// (plan/mailbox.hpp) that are wires as in post.hpp, and a line for replies beside each mail slot:
//
//     sender                                    receiver's inbox
//     ┌─────────┐  envelope, short data         ┌────────────────────────┐
//     │         │ ────────────────────────────► │ mail post + slot  0 …  │
//     │ replies │ ◄── ready | done ──────────── │                        │
//     │         │  pieces of long data          ├────────────────────────┤
//     │         │ ────────────────────────────► │ freight post + slot 0 …│
//     │ credits │ ◄──────────────────────────── └────────────────────────┘
//     └─────────┘
//
// A mail post is an *envelope*: tag, type, length, a reference of the data if it is long and the
// receiver can reach it. Receives are matched with envelopes in the mail slots, where they lie; what
// matches nothing stays there. A message keeps its mail slot until it is complete, and slots are
// given back in order. So a lane holds at most `slots` messages that have been sent and not received;
// further ones wait at the sender.

#include <cstddef>
#include <cstdint>

#include "kernels/exec/group.hpp"
#include "kernels/wire/post.hpp"
#include "treering/types.hpp"

namespace treering {

/// Sources and tags that match all.
inline constexpr std::int32_t wildcard = -1;

/// What a mail post says in place of a call word.
struct Envelope {
  std::int32_t tag;
  DataType type;
};
TREERING_PORTABLE inline std::uint64_t envelope_word(Envelope envelope) {
  return static_cast<std::uint64_t>(envelope.tag) << 8 | static_cast<std::uint64_t>(envelope.type);
}
TREERING_PORTABLE inline Envelope read_envelope(std::uint64_t word) {
  return {static_cast<std::int32_t>(word >> 8), static_cast<DataType>(word & 0xff)};
}

/// What a receiver answers to mail number n, in the reply line of its slot. Numbers rise, so the line
/// is never reset.
TREERING_PORTABLE constexpr std::uint64_t reply_ready(std::uint64_t n) { return 2 * n; }
TREERING_PORTABLE constexpr std::uint64_t reply_done(std::uint64_t n) { return 2 * n + 1; }

/// How far an operation is.
enum class Phase : std::uint8_t {
  posting,    ///< send: waits for a mail slot
  offered,    ///< send: the receiver knows of it
  streaming,  ///< send: its data goes into the freight lane
  wanted,     ///< receive: no message matches yet
  copying,    ///< receive: its data is copied out of the sender's memory
  arriving,   ///< receive: its data comes by the freight lane
  done
};

/// One message to be sent or received.
struct alignas(line_bytes) Operation {
  std::byte* data;
  std::uint64_t bytes;
  Reference reference;  ///< send: where the receiver may read the data; 0: nowhere
  std::int32_t peer;    ///< or wildcard; a receive's becomes the source
  std::int32_t tag;     ///< or wildcard; a receive's becomes the message's
  DataType type;
  bool streaming;  ///< bypass the caches when storing (host)
  Phase phase;

  std::uint64_t number;   ///< of its mail
  std::uint64_t moved;    ///< bytes that are through
  const std::byte* from;  ///< copying: the sender's data
};

/// Operations that were posted together. Control memory: the host reads what was received.
struct alignas(line_bytes) Batch {
  std::uint64_t finished;  ///< a flag: 1 when all operations are done; nobody touches it afterwards
  Operation* operations;
  std::int32_t count, left;
  Batch* next;
};

/// Both directions between this rank and one peer. Used by leaders only, one at a time.
struct alignas(line_bytes) PeerLanes {
  Edge mail, freight;
  Flag* replies;                              ///< [slots], by the peer, to this rank's mail
  Flag* replies_to;                           ///< [slots], in the peer's inbox
  std::uint64_t mail_credit, freight_credit;  ///< as last read
  std::uint64_t full;     ///< the pass in which a send found no mail slot: none overtakes it
  std::uint64_t seen;     ///< the pass in which `arrived` was read
  std::uint64_t arrived;  ///< mail that has come
  std::uint64_t taken;    ///< by slot, among `arrived` and not yet given back: matched …
  std::uint64_t through;  ///< … and complete
};

/// A rank's point-to-point operations under way.
struct alignas(line_bytes) PostOffice {
  WireShape mail, freight;
  PeerLanes* lanes;  ///< [size]
  Batch* first;
  // Where the current pass over all operations is.
  Batch* batch;
  std::int32_t operation;
  bool moved;                ///< something has, in this pass
  std::int32_t next_source;  ///< where receives from any source begin to look
  std::uint64_t pass;
  std::uint64_t progress;  ///< counts what has happened
  Turnstile turnstile;     ///< whose holder may use all this
};

}  // namespace treering
