#pragma once

// Both wires between this block and one peer. post.hpp has the picture.
//
//   sending                                    receiving
//   await_credit()   a slot is free            await_post()     a message of this call has come
//   outgoing(bytes)  where the message goes    incoming(bytes)  where it lies
//   post(bytes)      it is complete            release()        it has been consumed
//
// await_*, post and release are for the leader: call agree() between the waits and the data,
// complete() between the data and the flags.

#include "kernels/wire/call.hpp"

namespace treering {

template <class Group>
class Wire {
 public:
  TREERING_DEVICE Wire(Call<Group>& call, int peer)
      : call_(call), edge_(call.edge(peer)), peer_(peer) {}

  TREERING_DEVICE int peer() const { return peer_; }

  TREERING_DEVICE void await_credit() {
    if (!call_.group().is_leader()) return;  // who alone may look at the counters between barriers
    const std::uint64_t slots = call_.view().shape.slots, next = edge_.sent + 1;
    if (next > slots) call_.poll(Site::credit, peer_, edge_.to.credit->value, next - slots);
  }

  TREERING_DEVICE void await_post() {
    if (!call_.group().is_leader()) return;
    const Post& post = next_post();
    call_.poll(Site::post, peer_, post.step, edge_.received + 1);
    if (call_.ok() && post.word != call_.word()) call_.fail(Failure::mismatch, peer_);
  }

  /// Tells the peer how many bytes it is to get and to bring, and where this rank's ends of both lie. Nothing else
  /// is in such a message.
  TREERING_DEVICE void offer(std::uint64_t sent, std::uint64_t expected, Reference input,
                             Reference output) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    memcpy(next_to_send().payload, &expected, sizeof expected);
    post(sent, input, output);
  }

  /// The offer that has come must fit this rank's, or one of the two would write beyond the other's memory.
  TREERING_DEVICE void require_fit(std::uint64_t sent, std::uint64_t expected) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    const Post& theirs = next_post();
    std::uint64_t they_expect;
    memcpy(&they_expect, theirs.payload, sizeof they_expect);
    if (theirs.bytes != expected)
      call_.fail_of_sizes(peer_, peer_, theirs.bytes, expected);
    else if (they_expect != sent)
      call_.fail_of_sizes(peer_, call_.rank(), sent, they_expect);
  }

  /// The peer has released everything that was posted to it.
  TREERING_DEVICE void await_released() {
    if (!call_.group().is_leader()) return;
    call_.poll(Site::credit, peer_, edge_.to.credit->value, edge_.sent);
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

  /// References are for messages that offer this rank's buffers to the peer.
  TREERING_DEVICE void post(std::size_t bytes, Reference input = 0, Reference output = 0) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    Post& post = next_to_send();
    post.word = call_.word();
    post.bytes = bytes;
    post.input = input;
    post.output = output;
    call_.group().raise(Site::post, post.step, ++edge_.sent);
  }

  TREERING_DEVICE void release() {
    if (!call_.group().is_leader() || !call_.ok()) return;
    call_.group().raise(Site::credit, edge_.from.credit->value, ++edge_.received);
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
    return treering::resolve(call_.view(), peer_, reference);
  }

 private:
  Call<Group>& call_;
  Edge& edge_;
  int peer_;
};

}  // namespace treering
