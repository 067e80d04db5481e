#pragma once

// The root's wires to all others, and theirs to it. The root's array holds a part for each rank:
//
//                 ┌──► rank 1             ┌─── rank 1
//     hand_out:  root ──► rank 2    bring_in:  root ◄── rank 2
//                 └──► rank 3             └─── rank 3
//
// The root first tells everyone where its part lies. If the root's array is registered the others read or
// write it there, and nothing is staged; only the root's knowledge decides. Else the parts go through slots, in
// pieces; and at once, without that, where wires are not direct or parts are short.

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
class Star {
 public:
  TREERING_DEVICE explicit Star(Call& call) : call_(call), mesh_(call) {}

  /// The root gives every rank its part of the input, `part_of(rank)`; the others put theirs at the begin of
  /// their output.
  template <class PartOf>
  TREERING_DEVICE void hand_out(PartOf part_of) {
    const Chunk part = part_of(call_.rank());
    offers_ = mesh_.wants_offers(part);
    if (call_.rank() != call_.root()) return take({0, part.count});
    const Reference input = call_.args().input_reference;
    offer(input, part_of);
    copy(part, {0, part.count});
    if (offers_ && input != 0) return mesh_.await_released();
    for (std::size_t round = 0; round < rounds(part_of); ++round)
      mesh_.send([&](int rank) { return call_.piece(part_of(rank), round); });
  }

  /// The ranks give their input to the root, which puts it into their parts of its output, `part_of(rank)`.
  template <class PartOf>
  TREERING_DEVICE void bring_in(PartOf part_of) {
    const Chunk part = part_of(call_.rank());
    offers_ = mesh_.wants_offers(part);
    if (call_.rank() != call_.root()) return give({0, part.count});
    const Reference output = call_.args().output_reference;
    offer(output, part_of);
    copy({0, part.count}, part);
    if (offers_ && output != 0) return mesh_.await_released();
    for (std::size_t round = 0; round < rounds(part_of); ++round)
      mesh_.collect([&](int rank) { return call_.piece(part_of(rank), round); });
  }

 private:
  template <class PartOf>
  TREERING_DEVICE void offer(Reference array, PartOf part_of) {
    if (!offers_) return;
    call_.note_direct(array != 0);
    if (!mesh_.await_credits()) return;
    for (int d = 1; d < call_.size(); ++d) {
      const Chunk part = part_of(mesh_.to(d));
      const Reference place = array == 0 ? 0 : array + call_.bytes(part.begin);
      mesh_.wire(mesh_.to(d)).post(call_.bytes(part), place);
    }
  }

  /// What the root keeps: from its input to its output.
  TREERING_DEVICE void copy(Chunk from, Chunk to) {
    const Chunk mine = call_.share(from);
    if (call_.input(from.begin) == call_.output(to.begin)) return;  // others are reading it
    call_.fold_out(
        1, [&](int) { return call_.input(mine.begin); },  //
        1, [&](int) { return call_.output(mine.begin - from.begin + to.begin); }, mine.count);
  }

  /// What the root answered: where our part lies in its memory; null if it is staged.
  TREERING_DEVICE std::byte* await_offer() {
    if (!offers_) return nullptr;
    Wire<Call> root = mesh_.wire(call_.root());
    root.await_post();
    if (!call_.agree()) return nullptr;
    std::byte* place = root.offered_input();
    call_.note_direct(place != nullptr);
    return place;
  }

  TREERING_DEVICE void release() {
    call_.complete();
    mesh_.wire(call_.root()).release();
  }

  TREERING_DEVICE void take(Chunk part) {
    const std::byte* place = await_offer();
    if (place != nullptr) {
      const Chunk mine = call_.share(part);
      call_.fold_out(
          1, [&](int) { return place + call_.bytes(mine.begin); },  //
          1, [&](int) { return call_.output(mine.begin); }, mine.count);
    }
    if (offers_) release();
    if (place != nullptr) return;
    Wire<Call> root = mesh_.wire(call_.root());
    for (std::size_t round = 0; round < pieces(part); ++round) {
      const Chunk piece = call_.piece(part, round);
      root.await_post();
      if (!call_.agree()) return;
      call_.fold_out(
          1, [&](int) { return root.incoming(call_.bytes(piece)); },  //
          1, [&](int) { return call_.output(piece.begin); }, piece.count);
      release();
    }
  }

  TREERING_DEVICE void give(Chunk part) {
    std::byte* place = await_offer();
    if (place != nullptr) {
      const Chunk mine = call_.share(part);
      call_.fold_out(
          1, [&](int) { return call_.input(mine.begin); },  //
          1, [&](int) { return place + call_.bytes(mine.begin); }, mine.count);
    }
    if (offers_) release();
    if (place != nullptr) return;
    Wire<Call> root = mesh_.wire(call_.root());
    for (std::size_t round = 0; round < pieces(part); ++round) {
      const Chunk piece = call_.piece(part, round);
      root.await_credit();
      if (!call_.agree()) return;
      call_.fold(
          1, [&](int) { return call_.input(piece.begin); },  //
          1, [&](int) { return root.outgoing(call_.bytes(piece)); }, piece.count);
      call_.complete();
      root.post(call_.bytes(piece));
    }
  }

  TREERING_DEVICE std::size_t pieces(Chunk part) const {
    return pieces_of(call_.share(part), call_.args().call.chunk);
  }
  template <class PartOf>
  TREERING_DEVICE std::size_t rounds(PartOf part_of) const {
    std::size_t most = 0;
    for (int rank = 0; rank < call_.size(); ++rank) {
      const std::size_t own = pieces(part_of(rank));
      most = own > most ? own : most;
    }
    return most;
  }

  Call& call_;
  Mesh<Call> mesh_;
  bool offers_ = false;  ///< whether parts wait for what the root says; the same on all ranks
};

}  // namespace treering
