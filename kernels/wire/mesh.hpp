#pragma once

// A block's wires to all other ranks at once. Peers are served in rotated order, me+1, me+2 …, so
// that no rank is everybody's first.
//
// Where each peer gets or brings a chunk of its own, `chunk_of(peer)` says which; an empty chunk is not
// sent.
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

/// Whose memory a direct algorithm reads or writes.
enum class Access : std::uint8_t { inputs, outputs, both };

template <class Call>
class Mesh {
 public:
  TREERING_DEVICE explicit Mesh(Call& call) : call_(call), n_(call.size()), me_(call.rank()) {}

  TREERING_DEVICE Wire<Call> wire(int peer) const { return Wire<Call>(call_, peer); }

  /// Sends every peer a chunk of the input.
  template <class ChunkOf>
  TREERING_DEVICE void send(ChunkOf chunk_of) {
    if (!await_credits(chunk_of)) return;
    for (int d = 1; d < n_; ++d) {
      const Chunk chunk = chunk_of(to(d));
      call_.fold(
          1, [&](int) { return call_.input(chunk.begin); }, 1,
          [&](int) { return wire(to(d)).outgoing(call_.bytes(chunk)); }, chunk.count, {.own = 0});
    }
    post(chunk_of);
  }

  /// Sends every peer, or just one, the same chunk of the input, which may be empty: by reference if that is
  /// possible.
  TREERING_DEVICE void share(Chunk chunk, int only = -1) {
    const bool refer = by_reference(chunk);
    call_.note_direct(refer);
    referred_ = referred_ || refer;
    const auto gets = [&](int peer) { return Chunk{0, only < 0 || peer == only ? 1u : 0u}; };
    if (!await_credits(gets)) return;
    for (int d = 1; d < n_ && !refer; ++d)
      call_.fold(
          1, [&](int) { return call_.input(chunk.begin); }, 1,
          [&](int) { return wire(to(d)).outgoing(call_.bytes(chunk)); },
          gets(to(d)).count * chunk.count, {.own = 0});
    call_.complete();
    for (int d = 1; d < n_; ++d) {
      if (gets(to(d)).count == 0) continue;
      wire(to(d)).post(call_.bytes(chunk), refer ? call_.args().input_reference : 0);
    }
  }

  /// The chunk that a rank shared: this rank's own, the slot, or the peer's own memory.
  TREERING_DEVICE const std::byte* shared(int rank, Chunk chunk) const {
    if (rank == me_) return call_.input(chunk.begin);
    const Wire<Call> from = wire(rank);
    const std::byte* theirs = from.offered_input();
    return theirs != nullptr ? theirs + call_.bytes(chunk.begin)
                             : from.incoming(call_.bytes(chunk));
  }

  /// Tells every peer where the chunk of the input lies that it is to get, `chunk_to(peer)`, and where in
  /// the output the chunk belongs that it is to bring, `chunk_from(peer)`; waits until all have done so.
  /// The call fails if two ranks do not agree on a size. True, on all ranks alike, if all of the memory that
  /// is to be accessed is registered: then input_of and output_of are good until release(). False: the offers
  /// are over, and data must be staged.
  template <class ChunkTo, class ChunkFrom>
  TREERING_DEVICE bool offer(Access access, ChunkTo chunk_to, ChunkFrom chunk_from) {
    own_input_ = chunk_to(me_).begin;
    own_output_ = chunk_from(me_).begin;
    if (knows_enough() && !wants_offers(chunk_to(me_))) return false;
    if (!await_credits()) return false;
    for (int d = 1; d < n_; ++d) {
      const Chunk gets = chunk_to(to(d)), brings = chunk_from(to(d));
      wire(to(d)).offer(call_.bytes(gets), call_.bytes(brings),
                        moved(call_.args().input_reference, gets),
                        moved(call_.args().output_reference, brings));
    }
    if (!await_posts() || !sizes_fit(chunk_to, chunk_from)) return false;
    bool all =
        accessible(access, call_.args().input_reference != 0, call_.args().output_reference != 0);
    for (int d = 1; d < n_; ++d) {
      const Wire<Call> theirs = wire(to(d));
      all = all && accessible(access, theirs.offered_input() != nullptr,
                              theirs.offered_output() != nullptr);
    }
    call_.note_direct(all);
    if (!all) release();
    return Wire<Call>::direct && all;
  }
  /// Where the chunk lies that a rank has for this one; where the chunk goes that this rank has for it.
  TREERING_DEVICE const std::byte* input_of(int rank) const {
    return rank == me_ ? call_.input(own_input_) : wire(rank).offered_input();
  }
  TREERING_DEVICE std::byte* output_of(int rank) const {
    return rank == me_ ? call_.output(own_output_) : wire(rank).offered_output();
  }

  /// Whether data waits for offers: not a few lines, which are there nearly as soon as an offer would be.
  TREERING_DEVICE bool wants_offers(Chunk chunk) const {
    if (!Wire<Call>::direct) return false;
    return chunk.count == 0 || (!call_.args().unregistered && call_.bytes(chunk) > few_bytes);
  }

  /// A slot is free on every wire.
  TREERING_DEVICE bool await_credits() { return await_credits(everyone); }
  template <class ChunkOf>
  TREERING_DEVICE bool await_credits(ChunkOf chunk_of) {
    for (int d = 1; d < n_; ++d)
      if (chunk_of(to(d)).count != 0) wire(to(d)).await_credit();
    return call_.agree();
  }

  /// The slots that await_credits() found have been filled.
  template <class ChunkOf>
  TREERING_DEVICE void post(ChunkOf chunk_of) {
    call_.complete();
    for (int d = 1; d < n_; ++d) {
      const Chunk chunk = chunk_of(to(d));
      if (chunk.count != 0) wire(to(d)).post(call_.bytes(chunk));
    }
  }

  /// The next message of every peer is here.
  TREERING_DEVICE bool await_posts() { return await_posts(everyone); }
  template <class ChunkOf>
  TREERING_DEVICE bool await_posts(ChunkOf chunk_of) {
    for (int d = 1; d < n_; ++d)
      if (chunk_of(from(d)).count != 0) wire(from(d)).await_post();
    return call_.agree();
  }

  /// Every peer's current message has been consumed.
  TREERING_DEVICE void release() { release(everyone); }
  template <class ChunkOf>
  TREERING_DEVICE void release(ChunkOf chunk_of) {
    call_.complete();
    for (int d = 1; d < n_; ++d)
      if (chunk_of(from(d)).count != 0) wire(from(d)).release();
  }

  /// What a rank brings to a fold of `chunk`: this rank its input, a peer its message.
  TREERING_DEVICE const std::byte* contribution(int rank, Chunk chunk) const {
    return rank == me_ ? call_.input(chunk.begin) : wire(rank).incoming(call_.bytes(chunk));
  }
  /// Where the result of a fold goes: to this rank's output, or into the next message to a peer.
  TREERING_DEVICE std::byte* destination(int rank, Chunk chunk) const {
    return rank == me_ ? call_.output(chunk.begin) : wire(rank).outgoing(call_.bytes(chunk));
  }

  /// Waits for every peer's message and copies it to a chunk of the output.
  template <class ChunkOf>
  TREERING_DEVICE void collect(ChunkOf chunk_of) {
    if (!await_posts(chunk_of)) return;
    for (int d = 1; d < n_; ++d) {
      const int peer = from(d);
      const Chunk chunk = chunk_of(peer);
      call_.fold_out(
          1, [&](int) { return wire(peer).incoming(call_.bytes(chunk)); },  //
          1, [&](int) { return call_.output(chunk.begin); }, chunk.count);
    }
    release(chunk_of);
  }

  /// No peer has still to do with this rank's buffers.
  TREERING_DEVICE void await_released() {
    for (int d = 1; d < n_; ++d) wire(to(d)).await_released();
    call_.agree();
  }

  /// At the end of a call that used share().
  TREERING_DEVICE void settle() {
    if (referred_) await_released();
  }

  /// The peer at distance 1 … n-1 going up from this rank, and going down.
  TREERING_DEVICE int to(int distance) const {
    const int peer = me_ + distance;
    return peer < n_ ? peer : peer - n_;
  }
  TREERING_DEVICE int from(int distance) const { return to(n_ - distance); }

 private:
  /// Chunks of messages that all peers get, whatever is in them.
  TREERING_DEVICE static Chunk everyone(int /*peer*/) { return {0, 1}; }

  /// A registered input need not be copied, unless the result replaces it. A few lines are: that takes less time than
  /// to hear from all peers that they have read them.
  TREERING_DEVICE bool by_reference(Chunk chunk) const {
    return call_.args().input_reference != 0 && call_.args().input != call_.args().output &&
           call_.bytes(chunk) > few_bytes;
  }

  TREERING_DEVICE static bool accessible(Access access, bool input, bool output) {
    return (access == Access::outputs || input) && (access == Access::inputs || output);
  }

  /// Offers that nobody wants are still needed where sizes may differ, and where no data follows for which
  /// ranks would wait.
  TREERING_DEVICE bool knows_enough() const {
    const Descriptor& call = call_.args().call;
    return call.count != 0 && call.collective == even(call.collective);
  }

  TREERING_DEVICE Reference moved(Reference buffer, Chunk chunk) const {
    return buffer == 0 ? 0 : buffer + call_.bytes(chunk.begin);
  }

  template <class ChunkTo, class ChunkFrom>
  TREERING_DEVICE bool sizes_fit(ChunkTo chunk_to, ChunkFrom chunk_from) {
    for (int d = 1; d < n_; ++d) {
      const int peer = from(d);
      wire(peer).require_fit(call_.bytes(chunk_to(peer)), call_.bytes(chunk_from(peer)));
    }
    return call_.agree();
  }

  Call& call_;
  int n_, me_;
  std::size_t own_input_ = 0, own_output_ = 0;
  bool referred_ = false;
};

}  // namespace treering
