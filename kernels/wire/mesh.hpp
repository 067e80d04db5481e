#pragma once

// A block's wires to all other ranks at once. Peers are served in rotated order, me+1, me+2 …, so
// that no rank is everybody's first.
//
// Two ways to move data without staging it in slots:
//
//   by reference   A message says where the sender's input lies, and the receiver reads it there.
//                  The sender decides alone; it must await_released() before its caller may change
//                  the input.
//   direct         Every rank offers its input and output; if all did, all read and write one
//                  another's memory. release() then tells the peers that this is over.

#include "kernels/wire/wire.hpp"

namespace treering {

template <class Group>
class Mesh {
 public:
  TREERING_DEVICE explicit Mesh(Call<Group>& call)
      : call_(call), n_(call.size()), me_(call.rank()) {}

  TREERING_DEVICE Wire<Group> wire(int peer) const { return Wire<Group>(call_, peer); }

  /// Sends every peer a chunk of the input: `chunk_of(peer)`.
  template <class ChunkOf>
  TREERING_DEVICE void send(ChunkOf chunk_of) {
    if (!await_credits()) return;
    for (int d = 1; d < n_; ++d) {
      const Chunk chunk = chunk_of(to(d));
      call_.fold(
          1, [&](int) { return call_.input(chunk.begin); }, 1,
          [&](int) { return wire(to(d)).outgoing(call_.bytes(chunk)); }, chunk.count);
    }
    post(chunk_of);
  }

  /// Sends every peer the same chunk of the input: by reference if that is possible, else as send()
  /// does.
  TREERING_DEVICE void share(Chunk chunk) {
    call_.note_direct(by_reference(chunk));
    if (!by_reference(chunk)) return send([&](int) { return chunk; });
    if (!await_credits()) return;
    for (int d = 1; d < n_; ++d) wire(to(d)).post(call_.bytes(chunk), call_.args().input_reference);
  }

  /// The chunk that a rank shared: this rank's own, the slot, or the peer's own memory.
  TREERING_DEVICE const std::byte* shared(int rank, Chunk chunk) const {
    if (rank == me_) return call_.input(chunk.begin);
    const Reference reference = wire(rank).next_post().input;
    if (reference == 0) return wire(rank).incoming(call_.bytes(chunk));
    return resolve(rank, reference) + (call_.input(chunk.begin) - call_.input(0));
  }

  /// Tells every peer where this rank's buffers lie, and waits until all have done so. True, on all
  /// ranks alike, if everyone's are registered: then input_of and output_of are good until
  /// release().
  TREERING_DEVICE bool offer() {
    if (!await_credits()) return false;
    for (int d = 1; d < n_; ++d)
      wire(to(d)).post(0, call_.args().input_reference, call_.args().output_reference);
    if (!await_posts()) return false;
    bool all = call_.args().input_reference != 0 && call_.args().output_reference != 0;
    for (int d = 1; d < n_; ++d) {
      const Post& theirs = wire(to(d)).next_post();
      all = all && theirs.input != 0 && theirs.output != 0;
    }
    call_.note_direct(all);
    return all;
  }
  TREERING_DEVICE const std::byte* input_of(int rank) const {
    return rank == me_ ? call_.args().input : resolve(rank, wire(rank).next_post().input);
  }
  TREERING_DEVICE std::byte* output_of(int rank) const {
    return rank == me_ ? call_.args().output : resolve(rank, wire(rank).next_post().output);
  }

  /// A slot is free on every wire.
  TREERING_DEVICE bool await_credits() {
    for (int d = 1; d < n_; ++d) wire(to(d)).await_credit();
    return call_.agree();
  }

  /// The slots that await_credits() found have been filled.
  template <class ChunkOf>
  TREERING_DEVICE void post(ChunkOf chunk_of) {
    call_.complete();
    for (int d = 1; d < n_; ++d) wire(to(d)).post(call_.bytes(chunk_of(to(d))));
  }

  /// The next message of every peer is here.
  TREERING_DEVICE bool await_posts() {
    for (int d = 1; d < n_; ++d) wire(from(d)).await_post();
    return call_.agree();
  }

  /// Every peer's current message has been consumed.
  TREERING_DEVICE void release() {
    call_.complete();
    for (int d = 1; d < n_; ++d) wire(from(d)).release();
  }

  /// What a rank brings to a fold of `chunk`: this rank its input, a peer its message.
  TREERING_DEVICE const std::byte* contribution(int rank, Chunk chunk) const {
    return rank == me_ ? call_.input(chunk.begin) : wire(rank).incoming(call_.bytes(chunk));
  }
  /// Where the result of a fold goes: to this rank's output, or into the next message to a peer.
  TREERING_DEVICE std::byte* destination(int rank, Chunk chunk) const {
    return rank == me_ ? call_.output(chunk.begin) : wire(rank).outgoing(call_.bytes(chunk));
  }

  /// Waits for every peer's message and copies it to a chunk of the output: `chunk_of(peer)`.
  template <class ChunkOf>
  TREERING_DEVICE void collect(ChunkOf chunk_of) {
    if (!await_posts()) return;
    for (int d = 1; d < n_; ++d) {
      const int peer = from(d);
      const Chunk chunk = chunk_of(peer);
      call_.fold_out(
          1, [&](int) { return wire(peer).incoming(call_.bytes(chunk)); },  //
          1, [&](int) { return call_.output(chunk.begin); }, chunk.count);
    }
    release();
  }

  /// Every peer has consumed all messages of this rank.
  TREERING_DEVICE void await_released() {
    for (int d = 1; d < n_; ++d) wire(to(d)).await_released();
    call_.agree();
  }

  /// At the end of a call that used share().
  TREERING_DEVICE void settle(Chunk chunk) {
    if (by_reference(chunk)) await_released();
  }

  /// The peer at distance 1 … n-1 going up from this rank, and going down.
  TREERING_DEVICE int to(int distance) const { return (me_ + distance) % n_; }
  TREERING_DEVICE int from(int distance) const { return (me_ + n_ - distance) % n_; }

 private:
  /// A registered input need not be copied, unless the result replaces it or it fits a post.
  TREERING_DEVICE bool by_reference(Chunk chunk) const {
    return call_.args().input_reference != 0 && call_.args().input != call_.args().output &&
           call_.bytes(chunk) > inline_bytes;
  }

  TREERING_DEVICE std::byte* resolve(int rank, Reference reference) const {
    return treering::resolve(call_.view(), rank, reference);
  }

  Call<Group>& call_;
  int n_, me_;
};

}  // namespace treering
