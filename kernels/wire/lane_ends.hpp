#pragma once

// This rank's ends of the lanes to and from one peer (mail.hpp): what goes into them and what comes out
// of them. For the leader that holds the turnstile.

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"
#include "kernels/wire/mail.hpp"
#include "plan/mailbox.hpp"

namespace treering {

template <class Group>
class LaneEnds {
 public:
  TREERING_DEVICE LaneEnds(Group& group, PostOffice& office, int peer)
      : group_(group), office_(office), lanes_(office.lanes[peer]) {}

  // ---- to the peer

  /// Whether a send may mail now. Once it may not, no later one of the same pass may: none overtakes.
  TREERING_DEVICE bool mail_has_room() {
    if (lanes_.full == office_.pass) return false;
    if (has_room(Site::mail_credit, lanes_.mail, office_.mail, lanes_.mail_credit)) return true;
    lanes_.full = office_.pass;
    return false;
  }
  /// Where the data of the next mail goes if it is that short.
  TREERING_DEVICE std::byte* mail_slot(std::uint64_t bytes) {
    return short_data(lanes_.mail.to, lanes_.mail.sent, bytes);
  }
  /// Numbers the operation's mail.
  TREERING_DEVICE void post_mail(Operation& operation) {
    Post& post = lanes_.mail.to.posts[lanes_.mail.sent & (office_.mail.slots - 1)];
    post.word = envelope_word({operation.tag, operation.type});
    post.bytes = operation.bytes;
    post.input = operation.reference;
    operation.number = ++lanes_.mail.sent;
    group_.raise(Site::mail, post.step, operation.number);
  }
  /// The answer to mail `number`, or 0 if there is none yet.
  TREERING_DEVICE std::uint64_t hear_reply(std::uint64_t number) {
    const std::uint64_t& line = lanes_.replies[mail_index(number)].value;
    const std::uint64_t heard = load_relaxed(line);
    if (heard < reply_ready(number)) return 0;
    group_.acquire(Site::reply, line);
    return heard;
  }

  TREERING_DEVICE bool freight_has_room() {
    return has_room(Site::freight_credit, lanes_.freight, office_.freight, lanes_.freight_credit);
  }
  /// Where the next piece goes.
  TREERING_DEVICE std::byte* freight_slot() {
    return slot(lanes_.freight.to, lanes_.freight.sent, office_.freight);
  }
  /// A piece of mail `number`.
  TREERING_DEVICE void post_freight(std::uint64_t number, std::uint64_t bytes) {
    Post& post = lanes_.freight.to.posts[lanes_.freight.sent & (office_.freight.slots - 1)];
    post.word = number;
    post.bytes = bytes;
    group_.raise(Site::freight, post.step, ++lanes_.freight.sent);
  }

  // ---- from the peer

  /// The oldest mail with that tag that no receive has; 0 if there is none.
  TREERING_DEVICE std::uint64_t find_mail(std::int32_t tag) {
    look_for_mail();
    for (std::uint64_t n = lanes_.mail.received + 1; n <= lanes_.arrived; ++n) {
      if ((lanes_.taken & bit(n)) != 0) continue;
      if (tag == wildcard || read_envelope(mail(n).word).tag == tag) return n;
    }
    return 0;
  }
  TREERING_DEVICE const Post& mail(std::uint64_t number) const {
    return lanes_.mail.from.posts[mail_index(number)];
  }
  /// The data of mail that is that short.
  TREERING_DEVICE const std::byte* mail_data(std::uint64_t number, std::uint64_t bytes) {
    return short_data(lanes_.mail.from, number - 1, bytes);
  }
  /// A receive has it.
  TREERING_DEVICE void take_mail(std::uint64_t number) { lanes_.taken |= bit(number); }
  TREERING_DEVICE void reply(std::uint64_t number, std::uint64_t what) {
    group_.raise(Site::reply, lanes_.replies_to[mail_index(number)].value, what);
  }
  /// The message is complete. Slots are given back in order.
  TREERING_DEVICE void release_mail(std::uint64_t number) {
    lanes_.through |= bit(number);
    const std::uint64_t before = lanes_.mail.received;
    for (std::uint64_t next; (lanes_.through & (next = bit(lanes_.mail.received + 1))) != 0;) {
      lanes_.through &= ~next;
      lanes_.taken &= ~next;
      ++lanes_.mail.received;
    }
    if (lanes_.mail.received != before)
      group_.raise(Site::mail_credit, lanes_.mail.from.credit->value, lanes_.mail.received);
  }

  /// The first piece, if one is there and belongs to mail `number`; or null.
  TREERING_DEVICE const Post* find_freight(std::uint64_t number) {
    const std::uint64_t received = lanes_.freight.received;
    const Post& post = lanes_.freight.from.posts[received & (office_.freight.slots - 1)];
    if (load_relaxed(post.step) <= received) return nullptr;
    group_.acquire(Site::freight, post.step);
    return post.word == number ? &post : nullptr;
  }
  TREERING_DEVICE const std::byte* freight_data() {
    return slot(lanes_.freight.from, lanes_.freight.received, office_.freight);
  }
  TREERING_DEVICE void release_freight() {
    group_.raise(Site::freight_credit, lanes_.freight.from.credit->value,
                 ++lanes_.freight.received);
  }

 private:
  /// `known`: the latest credit that was read. Read anew, it may cost a cache miss.
  TREERING_DEVICE bool has_room(Site credit, const Edge& edge, WireShape shape,
                                std::uint64_t& known) {
    if (edge.sent - known < shape.slots) return true;
    known = load_relaxed(edge.to.credit->value);
    group_.acquire(credit, edge.to.credit->value);
    return edge.sent - known < shape.slots;
  }

  /// Once a pass, so that a receive does not find what an earlier one should have found.
  TREERING_DEVICE void look_for_mail() {
    if (lanes_.seen == office_.pass) return;
    lanes_.seen = office_.pass;
    while (lanes_.arrived - lanes_.mail.received < office_.mail.slots) {
      const Post& next = mail(lanes_.arrived + 1);
      if (load_relaxed(next.step) <= lanes_.arrived) return;
      group_.acquire(Site::mail, next.step);
      ++lanes_.arrived;
    }
  }

  /// Inside the post, if that takes it.
  template <class End>
  TREERING_DEVICE std::byte* short_data(const End& end, std::uint64_t index,
                                        std::uint64_t bytes) const {
    return bytes <= inline_bytes ? end.posts[index & (office_.mail.slots - 1)].payload
                                 : slot(end, index, office_.mail);
  }
  template <class End>
  TREERING_DEVICE static std::byte* slot(const End& end, std::uint64_t index, WireShape shape) {
    return end.slots + (index & (shape.slots - 1)) * shape.slot_bytes;
  }
  TREERING_DEVICE std::size_t mail_index(std::uint64_t number) const {
    return (number - 1) & (office_.mail.slots - 1);
  }
  TREERING_DEVICE static std::uint64_t bit(std::uint64_t number) {
    return std::uint64_t{1} << (number % most_mail_slots);
  }

  Group& group_;
  PostOffice& office_;
  PeerLanes& lanes_;
};

}  // namespace treering
