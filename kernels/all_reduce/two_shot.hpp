#pragma once

// Two-shot all-reduce: rank c adds up chunk c of everyone, then gives the sum to everyone.
//
//     first shot                          second shot
//     0: a₀ b₀ c₀        rank 0: Σa       Σa ──► all
//     1: a₁ b₁ c₁   ──►  rank 1: Σb       Σb ──► all       two steps, 2(n-1)/n of the array sent
//     2: a₂ b₂ c₂        rank 2: Σc       Σc ──► all       by each rank, as in a ring
//
// Where every rank's buffers are registered both shots are one: rank c reads chunk c out of all
// inputs and writes the sum into all outputs. Nothing is copied but the result.

#include "kernels/wire/mesh.hpp"

namespace treering {

template <class Group>
TREERING_DEVICE void two_shot_direct(Call<Group>& call, Mesh<Group>& mesh) {
  const int n = call.size();
  const Chunk mine = part_of(call.share(call.args().call.count), call.rank(), n, cut_grain);
  // In bytes, the same in every rank's buffers.
  const std::ptrdiff_t offset = call.input(mine.begin) - call.input(0);
  call.fold_out(
      n, [&](int rank) { return mesh.input_of(rank) + offset; },  //
      n, [&](int rank) { return mesh.output_of(rank) + offset; }, mine.count, true);
  mesh.release();
  mesh.await_released();
}

template <class Group>
TREERING_DEVICE void two_shot_staged(Call<Group>& call, Mesh<Group>& mesh) {
  const int n = call.size();
  for (Rounds round = call.rounds(call.args().call.count, n); round.more(); round.next()) {
    const auto chunk = [&](int rank) { return round.chunk(rank); };
    const Chunk mine = chunk(call.rank());

    mesh.send(chunk);  // first shot
    if (!mesh.await_posts() || !mesh.await_credits()) return;
    call.fold(
        n, [&](int rank) { return mesh.contribution(rank, mine); },  //
        n, [&](int rank) { return mesh.destination(rank, mine); }, mine.count, true);
    mesh.release();
    mesh.post([&](int) { return mine; });  // second shot
    mesh.collect(chunk);
  }
}

template <class Group>
TREERING_DEVICE void all_reduce_two_shot(Call<Group>& call) {
  Mesh<Group> mesh(call);
  if (mesh.offer()) return two_shot_direct(call, mesh);
  mesh.release();  // not all are registered: take note of the offers, and stage
  two_shot_staged(call, mesh);
}

}  // namespace treering
