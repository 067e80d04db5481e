#pragma once

// One-shot all-reduce: everyone sends everything to everyone, and everyone adds everything up.
//
//     ( 0 )◄────►( 1 )
//       ▲ ╲    ╱ ▲         one step, (n-1) times the array sent by each rank:
//       │   ╳    │         the fastest while latency is all that counts
//       ▼ ╱    ╲ ▼
//     ( 3 )◄────►( 2 )
//
// All ranks add in rank order, so all get the same bits.

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void all_reduce_one_shot(Call& call) {
  Mesh mesh(call);
  for (Rounds round = call.rounds(call.whole(), 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    mesh.share(chunk);
    if (!mesh.await_posts()) return;
    call.fold_out(
        call.size(), [&](int rank) { return mesh.shared(rank, chunk); },  //
        1, [&](int) { return call.output(chunk.begin); }, chunk.count,
        {.own = call.rank(), .last = true});
    mesh.release();
  }
  mesh.settle();
}

}  // namespace treering
