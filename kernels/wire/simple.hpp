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
    if (next > slots) call_.poll(Site::credit, peer_, edge_.to.credit->value, next - slots);
  }

  TREERING_DEVICE void await_post() {
    if (!call_.group().is_leader()) return;
    const Post& post = next_post();
    call_.poll(Site::post, peer_, post.step, edge_.received + 1);
    if (call_.ok() && post.word != call_.word()) call_.fail(Failure::mismatch, peer_);
  }

  TREERING_DEVICE void expect(std::size_t bytes) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    const std::uint64_t theirs = next_post().bytes;
    if (theirs != bytes) call_.fail(Failure::sizes, peer_, theirs, bytes);
  }

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

  TREERING_DEVICE void post(std::size_t bytes) { offer(bytes, 0, 0); }

  TREERING_DEVICE void offer(std::size_t bytes, Reference input, Reference output) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    Post& post = edge_.to.posts[edge_.sent & (call_.view().shape.slots - 1)];
    post.word = call_.word();
    post.bytes = bytes;
    post.input = input;
    post.output = output;
    call_.group().raise(Site::post, post.step, ++edge_.sent);
  }

  TREERING_DEVICE std::byte* offered_input() const { return resolve(next_post().input); }
  TREERING_DEVICE std::byte* offered_output() const { return resolve(next_post().output); }

  TREERING_DEVICE void release() {
    if (!call_.group().is_leader() || !call_.ok()) return;
    call_.group().raise(Site::credit, edge_.from.credit->value, ++edge_.received);
  }

 private:
  /// The post of the message that is to be released next.
  TREERING_DEVICE const Post& next_post() const {
    return edge_.from.posts[edge_.received & (call_.view().shape.slots - 1)];
  }

  /// Where the peer's memory lies in which that reference was made.
  TREERING_DEVICE std::byte* resolve(Reference reference) const {
    if (reference == 0) return nullptr;
    const std::uint64_t region = reference >> reference_offset_bits;
    const std::uint64_t offset = reference & ((std::uint64_t{1} << reference_offset_bits) - 1);
    return call_.view().regions[peer_].base[region] + offset;
  }

  Call& call_;
  Edge& edge_;
  int peer_;
};

}  // namespace treering
