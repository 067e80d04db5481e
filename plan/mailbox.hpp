#pragma once

// How the part of an inbox that takes point-to-point messages is divided among the peers. Each pair
// of ranks has two lanes: *mail*, many small slots that hold a short message each, and *freight*, few
// large ones through which long messages stream. The part of one peer:
//
//     flags │ mail posts │ replies │ freight posts │ mail credit │ freight credit │   whole pages,
//     mail  │ slot 0 │ slot 1 │ …                                                 │   each backed
//     freight │ slot 0    │ slot 1    │ …                                         │   when first used

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "plan/inbox.hpp"

namespace treering {

/// Most mail slots of a lane: their states fit one word.
inline constexpr std::size_t most_mail_slots = 64;

/// Mail lanes of a communicator of `size` ranks: of `budget` bytes a rank, shared among its peers, a
/// quarter. 64 slots of 2 KiB where that suffices; fewer slots only where less than 64 of 64 bytes
/// would fit.
constexpr WireShape shape_mail(std::size_t budget, int size) {
  constexpr std::size_t smallest = line_bytes, largest = 2048;
  const std::size_t share = budget / static_cast<std::size_t>(std::max(size - 1, 1)) / 4;
  const std::size_t slots =
      std::clamp(std::bit_floor(share / smallest), std::size_t{4}, most_mail_slots);
  const std::size_t bytes = std::clamp(std::bit_floor(share / slots), smallest, largest);
  return {static_cast<std::uint32_t>(slots), static_cast<std::uint32_t>(bytes)};
}

/// Freight lanes are like the wires of one channel.
constexpr WireShape shape_freight(std::size_t budget, int size, std::size_t slot_bytes) {
  return shape_wires(budget, size, 1, slot_bytes);
}

/// Where things lie in one rank's part for one peer, in bytes from the begin of the mailbox. What
/// `peer` writes there: the mail and freight that it sends, its replies to and credits for what it
/// received.
struct MailboxLayout {
  WireShape mail, freight;
  std::size_t size;

  constexpr std::size_t flags(int peer) const { return static_cast<std::size_t>(peer) * share(); }
  constexpr std::size_t mail_posts(int peer) const { return line(peer, 0); }
  constexpr std::size_t replies(int peer) const { return line(peer, mail.slots); }
  constexpr std::size_t freight_posts(int peer) const { return line(peer, 2 * mail.slots); }
  constexpr std::size_t mail_credit(int peer) const { return line(peer, lines() - 2); }
  constexpr std::size_t freight_credit(int peer) const { return line(peer, lines() - 1); }

  constexpr std::size_t mail_slots(int peer) const { return flags(peer) + flag_bytes(); }
  constexpr std::size_t freight_slots(int peer) const { return mail_slots(peer) + mail_bytes(); }

  constexpr std::size_t flag_bytes() const { return whole_pages(lines() * line_bytes); }
  constexpr std::size_t mail_bytes() const { return whole_pages(lane_bytes(mail)); }
  constexpr std::size_t freight_bytes() const { return whole_pages(lane_bytes(freight)); }
  constexpr std::size_t bytes() const { return size * share(); }

 private:
  static constexpr std::size_t whole_pages(std::size_t bytes) {
    constexpr std::size_t page = 4096;
    return (bytes + page - 1) / page * page;
  }
  static constexpr std::size_t lane_bytes(WireShape lane) {
    return std::size_t{lane.slots} * lane.slot_bytes;
  }
  constexpr std::size_t lines() const { return std::size_t{2} * mail.slots + freight.slots + 2; }
  constexpr std::size_t line(int peer, std::size_t number) const {
    return flags(peer) + number * line_bytes;
  }
  constexpr std::size_t share() const { return flag_bytes() + mail_bytes() + freight_bytes(); }
};

}  // namespace treering
