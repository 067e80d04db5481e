#pragma once

// Direct reduce-scatter: everyone sends part p of its input to rank p, which adds them up in rank
// order. Where all inputs are registered, rank p reads its part out of them instead.
//
//     0: a₀ b₀ c₀          rank 0: Σa
//     1: a₁ b₁ c₁   ──►    rank 1: Σb         one step, (n-1)/n of the input sent by each rank
//     2: a₂ b₂ c₂          rank 2: Σc

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Group>
TREERING_DEVICE void reduce_scatter_direct(Call<Group>& call) {
  Mesh<Group> mesh(call);
  const int n = call.size(), me = call.rank();
  const std::size_t count = call.args().call.count;
  if (mesh.offer()) {
    const Chunk mine = call.share(count);
    const std::ptrdiff_t offset = call.input(me * count + mine.begin) - call.input(0);
    call.fold_out(
        n, [&](int rank) { return mesh.input_of(rank) + offset; },  //
        1, [&](int) { return call.output(mine.begin); }, mine.count, true);
    mesh.release();
    return mesh.await_released();
  }
  mesh.release();
  for (Rounds round = call.rounds(count, 1); round.more(); round.next()) {
    const Chunk result = round.chunk(0);
    const auto part = [&](int rank) { return Chunk{rank * count + result.begin, result.count}; };
    mesh.send(part);
    if (!mesh.await_posts()) return;
    call.fold_out(
        n, [&](int rank) { return mesh.contribution(rank, part(me)); },  //
        1, [&](int) { return call.output(result.begin); }, result.count, true);
    mesh.release();
  }
}

}  // namespace treering
