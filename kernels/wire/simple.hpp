#pragma once

// The simple wire: slots, and posts that say when one is complete. post.hpp has the picture. Waits and
// flags are the leader's alone.

#include "kernels/wire/call.hpp"

namespace treering {

/// See wire.hpp.
template <class Call>
class SimpleWire {
 public:
  static constexpr bool direct = true;

  TREERING_DEVICE SimpleWire(Call& call, int peer)
      : call_(call), edge_(call.edge(peer)), peer_(peer) {}

  TREERING_DEVICE int peer() const { return peer_; }

  TREERING_DEVICE void await_credit() {
    if (!call_.group().is_leader()) return;  // who alone may look at the counters between barriers
    const std::uint64_t slots = call_.view().shape.slots, next = edge_.sent + 1;
    if (next > edge_.credit + slots)
      edge_.credit = call_.poll(Site::credit, peer_, edge_.to.credit->value, next - slots);
  }

  TREERING_DEVICE void await_post() {
    if (!call_.group().is_leader()) return;
    const Post& post = next_post();
    call_.poll(Site::post, peer_, post.step, edge_.received + 1);
    if (call_.ok() && post.word != call_.word()) call_.fail(Failure::mismatch, peer_);
  }

  TREERING_DEVICE void offer(std::uint64_t sent, std::uint64_t expected, Reference input,
                             Reference output) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    memcpy(next_to_send().payload, &expected, sizeof expected);
    post(sent, input, output);
  }

  TREERING_DEVICE void require_fit(std::uint64_t sent, std::uint64_t expected) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    const Post& theirs = next_post();
    std::uint64_t they_expect;
    memcpy(&they_expect, theirs.payload, sizeof they_expect);
    call_.require_fit(peer_, sent, they_expect, theirs.bytes, expected);
  }

  TREERING_DEVICE void await_released() {
    if (!call_.group().is_leader()) return;
    call_.poll(Site::credit, peer_, edge_.to.credit->value, edge_.referred);
  }

  /// A message of at most inline_bytes travels in its post.
  TREERING_DEVICE std::byte* outgoing(std::size_t bytes) const {
    const std::size_t slot = edge_.sent & (call_.view().shape.slots - 1);
    return bytes <= inline_bytes ? edge_.to.posts[slot].payload
                                 : edge_.to.slots + slot * call_.view().shape.slot_bytes;
  }
  TREERING_DEVICE const std::byte* incoming(std::size_t bytes) const {
    const std::size_t slot = edge_.received & (call_.view().shape.slots - 1);
    return bytes <= inline_bytes ? edge_.from.posts[slot].payload
                                 : edge_.from.slots + slot * call_.view().shape.slot_bytes;
  }

  TREERING_DEVICE void post(std::size_t bytes, Reference input = 0, Reference output = 0) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    Post& post = next_to_send();
    post.word = call_.word();
    post.bytes = bytes;
    post.input = input;
    post.output = output;
    ++edge_.sent;
    if (input != 0 || output != 0) edge_.referred = edge_.sent;
    call_.group().raise(Site::post, post.step, edge_.sent);
  }

  TREERING_DEVICE std::byte* offered_input() const { return resolve(next_post().input); }
  TREERING_DEVICE std::byte* offered_output() const { return resolve(next_post().output); }

  TREERING_DEVICE void release() {
    if (!call_.group().is_leader() || !call_.ok()) return;
    const bool may_wait = needs_no_slot(next_post());
    ++edge_.received;
    if (may_wait && edge_.received % (call_.view().shape.slots / 2) != 0) return;
    call_.group().raise(Site::credit, edge_.from.credit->value, edge_.received);
  }

 private:
  /// Nobody waits for the credit of such a message before half of the posts are used up; so most of them
  /// cost no store into the peer's memory.
  TREERING_DEVICE static bool needs_no_slot(const Post& post) {
    return post.bytes <= inline_bytes && post.input == 0 && post.output == 0;
  }

  /// The post of the message that is to be released next.
  TREERING_DEVICE const Post& next_post() const {
    return edge_.from.posts[edge_.received & (call_.view().shape.slots - 1)];
  }

  TREERING_DEVICE Post& next_to_send() const {
    return edge_.to.posts[edge_.sent & (call_.view().shape.slots - 1)];
  }

  /// Where the peer's memory lies in which that reference was made.
  TREERING_DEVICE std::byte* resolve(Reference reference) const {
    return reference == 0 ? nullptr : treering::resolve(call_.view(), peer_, reference);
  }

  Call& call_;
  Edge& edge_;
  int peer_;
};

}  // namespace treering
