#pragma once

// Direct reduce: everyone sends its array to the root, by reference where that is possible, and the root adds
// them all up at once, in rank order.
//
//     1 ──┐
//     2 ──┼──► root: Σ              one step, (n-1) times the array received by the root: for few ranks, and
//     3 ──┘                         for sums that must be the same whatever the number of steps

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void reduce_direct(Call& call) {
  Mesh mesh(call);
  const int n = call.size(), me = call.rank(), root = call.root();
  call.note_direct(me == root);  // which stages nothing itself
  for (Rounds round = call.rounds(call.whole(), 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    if (me != root) {
      mesh.share(chunk, root);
      continue;
    }
    if (!mesh.await_posts()) return;
    call.fold_out(
        n, [&](int rank) { return mesh.shared(rank, chunk); },  //
        1, [&](int) { return call.output(chunk.begin); }, chunk.count, {.own = me, .last = true});
    mesh.release();
  }
  mesh.settle();
}

}  // namespace treering
