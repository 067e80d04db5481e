#pragma once

// How a rank's inbox, the memory in which it receives, is divided among its peers.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "plan/ll_slots.hpp"
#include "plan/wire_shape.hpp"

namespace treering {

/// Shape of all wires of a communicator of `size` ranks with `channels` channels, so that a rank's
/// slots stay within `budget` bytes. `slot_bytes` 0: chosen. Slots of up to 256 KiB, since the
/// hand-shake costs more than the copy below that; eight of them, since a slot that is reused soon
/// is still dirty in the other core's cache, and more would not stay in the cache that both share.
/// A tiny budget still gives two slots of 1 KiB.
constexpr WireShape shape_wires(std::size_t budget, int size, int channels,
                                std::size_t slot_bytes) {
  constexpr std::size_t smallest = 1024, largest = 256 * 1024, wanted = 8;
  const std::size_t wires =
      static_cast<std::size_t>(std::max(size - 1, 1)) * static_cast<std::size_t>(channels);
  const std::size_t share = std::max(budget / wires, 2 * smallest);
  const std::size_t bytes = slot_bytes != 0
                                ? (slot_bytes + line_bytes - 1) / line_bytes * line_bytes
                                : std::clamp(std::bit_floor(share / wanted), smallest, largest);
  const std::size_t slots = std::clamp(std::bit_floor(share / bytes), std::size_t{2}, wanted);
  return {static_cast<std::uint32_t>(slots), static_cast<std::uint32_t>(bytes)};
}

/// Where things lie in an inbox, in bytes from its begin. First the flags, then all slots, then all LL wires;
/// these come on top of the budget, and take no more than the slots.
struct InboxLayout {
  WireShape shape;
  std::size_t size, channels;

  constexpr std::size_t wire(int channel, int peer) const {
    return static_cast<std::size_t>(channel) * size + static_cast<std::size_t>(peer);
  }
  /// Posts of the messages that `peer` sends.
  constexpr std::size_t posts(int channel, int peer) const {
    return wire(channel, peer) * shape.slots * line_bytes;
  }
  /// Credits that `peer` gives for what this rank sent it.
  constexpr std::size_t credit(int channel, int peer) const {
    return posts(static_cast<int>(channels), 0) + wire(channel, peer) * line_bytes;
  }
  /// The same for LL messages.
  constexpr std::size_t ll_credit(int channel, int peer) const {
    return credit(static_cast<int>(channels), 0) + wire(channel, peer) * line_bytes;
  }
  /// Slots that `peer` fills.
  constexpr std::size_t slots(int channel, int peer) const {
    constexpr std::size_t page = 4096;
    const std::size_t flags = (ll_credit(static_cast<int>(channels), 0) + page - 1) / page * page;
    return flags + wire(channel, peer) * wire_bytes();
  }
  constexpr std::size_t wire_bytes() const { return std::size_t{shape.slots} * shape.slot_bytes; }

  /// LL slots that `peer` fills; then, for this rank alone, the header and data of the message that has come
  /// from it, and the data of the one that goes to it.
  constexpr std::size_t ll_slots(int channel, int peer) const {
    return slots(static_cast<int>(channels), 0) + wire(channel, peer) * ll_wire_bytes();
  }
  constexpr std::size_t ll_header(int channel, int peer) const {
    return ll_slots(channel, peer) + shape.slots * ll_slot_bytes(shape);
  }
  constexpr std::size_t ll_incoming(int channel, int peer) const {
    return ll_header(channel, peer) + line_bytes;
  }
  constexpr std::size_t ll_outgoing(int channel, int peer) const {
    return ll_incoming(channel, peer) + ll_capacity(shape);
  }
  constexpr std::size_t ll_wire_bytes() const {
    return shape.slots * ll_slot_bytes(shape) + line_bytes + 2 * ll_capacity(shape);
  }

  constexpr std::size_t bytes() const { return ll_slots(static_cast<int>(channels), 0); }
};

}  // namespace treering
