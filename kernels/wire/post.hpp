#pragma once

// What lies in memory between two ranks. A *wire* leads from one sender to one receiver, for one
// channel (block b of every rank uses channel b):
//
//     sender                              receiver's inbox
//     ┌────────┐   fills a slot           ┌──────────────────────┐
//     │        │ ───────────────────────► │ slot 0 │ slot 1 │ …  │
//     │        │   raises its post        ├──────────────────────┤
//     │        │ ───────────────────────► │ post 0 │ post 1 │ …  │   one line each
//     │        │                          └──────────────────────┘
//     │ credit │ ◄─────────────────────── raised when a slot is free again
//     └────────┘
//
// Message number s (from 1) uses slot and post s mod slots. Its post's step becomes s when the
// message is complete; the credit becomes s when the receiver has done with it, or some messages
// later if it needed no slot. Steps never repeat, so nothing is ever reset.

#include <cstddef>
#include <cstdint>

#include "plan/wire_shape.hpp"

namespace treering {

/// Bytes that a message may have to travel inside its post, without a slot.
inline constexpr std::size_t inline_bytes = 24;

/// Where a rank's registered buffer lies, in a form that every rank can resolve: region number in
/// the upper 16 bits, offset in that region in the lower 48. Zero: not registered.
using Reference = std::uint64_t;
inline constexpr int reference_offset_bits = 48;

/// One message's header: everything in one line, so that a short message costs one cache miss.
struct alignas(line_bytes) Post {
  std::uint64_t step;       ///< the flag: number of the message that this line describes
  std::uint64_t word;       ///< the sender's call word (board.hpp)
  std::uint64_t bytes;      ///< length of the message
  Reference input, output;  ///< the sender's buffers in this call
  std::byte payload[inline_bytes];
};
static_assert(sizeof(Post) == line_bytes);

/// A flag on a line of its own.
struct alignas(line_bytes) Flag {
  std::uint64_t value;
};
static_assert(sizeof(Flag) == line_bytes);

/// The sender's end of a wire: where it writes and what it polls.
struct SendEnd {
  std::byte* slots;
  Post* posts;
  Flag* credit;
};

/// The receiver's end of a wire.
struct ReceiveEnd {
  std::byte* slots;
  Post* posts;
  Flag* credit;
};

/// Both wires between this rank and one peer on one channel, and how far they are. Lives in device
/// memory of this rank and outlasts calls, so that a captured graph replays without the host.
/// Written by the leader only.
struct alignas(line_bytes) Edge {
  SendEnd to;
  ReceiveEnd from;
  std::uint64_t sent;      ///< messages posted to the peer
  std::uint64_t received;  ///< messages of the peer that were consumed
  std::uint64_t credit;    ///< to.credit, as last read: to read it anew may cost a cache miss
  std::uint64_t referred;  ///< the latest message that said where buffers of this rank lie
};

/// Header of an LL message (ll.hpp).
struct LlHeader {
  std::uint64_t word;   ///< the sender's call word
  std::uint64_t bytes;  ///< length of the message
};

/// The same for LL wires, which have slots, credits and counters of their own. Messages are put together
/// and taken apart in this rank's own memory.
struct alignas(line_bytes) LlEdge {
  struct {
    std::uint64_t* slots;
    std::byte* outgoing;
    Flag* credit;
  } to;
  struct {
    std::uint64_t* slots;
    LlHeader* header;
    std::byte* incoming;
    Flag* credit;
  } from;
  std::uint64_t
      sent;  ///< number of the latest message to the peer, which may still be in the making
  std::uint64_t received;  ///< messages of the peer that were consumed
};

}  // namespace treering
