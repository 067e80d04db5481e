#pragma once

// Direct reduce-scatter: everyone sends part p of its input to rank p, which adds them up in rank
// order. Where all inputs are registered, rank p reads its part out of them instead.
// Parts may be uneven.
//
//     0: a₀ b₀ c₀          rank 0: Σa
//     1: a₁ b₁ c₁   ──►    rank 1: Σb         one step, (n-1)/n of the input sent by each rank
//     2: a₂ b₂ c₂          rank 2: Σc

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void reduce_scatter_direct(Call& call) {
  Mesh mesh(call);
  const int n = call.size(), me = call.rank();
  const auto part = [&](int rank) { return call.input_part(rank); };
  const Chunk result{0, part(me).count};
  if (mesh.offer(Access::inputs, part, [&](int) { return result; })) {
    const Chunk mine = call.share(result);
    call.fold_out(
        n, [&](int rank) { return mesh.input_of(rank) + call.bytes(mine.begin); },  //
        1, [&](int) { return call.output(mine.begin); }, mine.count, {.last = true});
    mesh.release();
    return mesh.await_released();
  }
  for (std::size_t round = 0; round < call.input_rounds(); ++round) {
    const Chunk mine = call.piece(part(me), round), sum = call.piece(result, round);
    mesh.send([&](int rank) { return call.piece(part(rank), round); });
    if (!mesh.await_posts([&](int) { return mine; })) return;
    call.fold_out(
        n, [&](int rank) { return mesh.contribution(rank, mine); },  //
        1, [&](int) { return call.output(sum.begin); }, sum.count, {.own = me, .last = true});
    mesh.release([&](int) { return mine; });
  }
}

}  // namespace treering
