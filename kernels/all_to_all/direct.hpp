#pragma once

// Direct all-to-all: part p of rank r's input becomes part r of rank p's output. Everyone serves
// its peers in rotated order, me+1, me+2 …, so that each rank is written by one peer at a time.
//
//     0: a₀ b₀ c₀            a₀ a₁ a₂
//     1: a₁ b₁ c₁    ──►     b₀ b₁ b₂        a transposition; (n-1)/n of the input sent by each
//     2: a₂ b₂ c₂            c₀ c₁ c₂
//
// Where everything is registered, parts go straight into the peers' outputs. In place they cannot:
// a part would overwrite one that its owner has not sent yet.

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Group>
TREERING_DEVICE void all_to_all_direct(Call<Group>& call) {
  Mesh<Group> mesh(call);
  const int n = call.size(), me = call.rank();
  const std::size_t count = call.args().call.count;
  if (mesh.offer()) {
    const Chunk mine = call.share(count);
    const std::ptrdiff_t offset = call.output(me * count + mine.begin) - call.output(0);
    for (int i = 0; i < n; ++i) {
      const int peer = (me + i) % n;
      call.fold_out(
          1, [&](int) { return call.input(peer * count + mine.begin); },  //
          1, [&](int) { return mesh.output_of(peer) + offset; }, mine.count);
    }
    mesh.release();
    return mesh.await_released();
  }
  mesh.release();
  for (Rounds round = call.rounds(count, 1); round.more(); round.next()) {
    const auto part = [&](int rank) {
      return Chunk{rank * count + round.chunk(0).begin, round.chunk(0).count};
    };
    mesh.send(part);
    call.fold_out(
        1, [&](int) { return call.input(part(me).begin); },  //
        1, [&](int) { return call.output(part(me).begin); }, part(me).count);
    mesh.collect(part);
  }
}

}  // namespace treering
