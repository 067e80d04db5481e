#pragma once

// Direct all-to-all: part p of rank r's input becomes part r of rank p's output. Everyone serves
// its peers in rotated order, me+1, me+2 …, so that each rank is written by one peer at a time.
//
//     0: a₀ b₀ c₀            a₀ a₁ a₂
//     1: a₁ b₁ c₁    ──►     b₀ b₁ b₂        a transposition; (n-1)/n of the input sent by each
//     2: a₂ b₂ c₂            c₀ c₁ c₂
//
// Where everything is registered, parts go straight into the peers' outputs. In place they cannot:
// a part would overwrite one that its owner has not sent yet. Parts may be uneven, or empty.

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void all_to_all_direct(Call& call) {
  Mesh mesh(call);
  const int n = call.size(), me = call.rank();
  const auto outgoing = [&](int peer) { return call.input_part(peer); };
  const auto incoming = [&](int peer) { return call.output_part(peer); };
  if (mesh.offer(Access::outputs, outgoing, incoming)) {
    for (int i = 0; i < n; ++i) {
      const int peer = (me + i) % n;
      const Chunk whole = outgoing(peer), mine = call.share(whole);
      call.fold_out(
          1, [&](int) { return call.input(mine.begin); },  //
          1, [&](int) { return mesh.output_of(peer) + call.bytes(mine.begin - whole.begin); },
          mine.count);
    }
    mesh.release();
    return mesh.await_released();
  }
  const std::size_t sends = call.input_rounds(), receives = call.output_rounds();
  for (std::size_t round = 0; round < sends || round < receives; ++round) {
    const auto sent = [&](int peer) { return call.piece(outgoing(peer), round); };
    const auto received = [&](int peer) { return call.piece(incoming(peer), round); };
    mesh.send(sent);
    call.fold_out(
        1, [&](int) { return call.input(sent(me).begin); },  //
        1, [&](int) { return call.output(received(me).begin); }, sent(me).count);
    mesh.collect(received);
  }
}

}  // namespace treering
