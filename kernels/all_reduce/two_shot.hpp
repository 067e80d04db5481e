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

template <class Call>
TREERING_DEVICE void two_shot_direct(Call& call, Mesh<Call>& mesh) {
  const int n = call.size();
  const Chunk mine = part_of(call.share(call.whole()), call.rank(), n, cut_grain);
  const std::size_t offset = call.bytes(mine.begin);  // the same in every rank's buffers
  call.fold_out(
      n, [&](int rank) { return mesh.input_of(rank) + offset; },  //
      n, [&](int rank) { return mesh.output_of(rank) + offset; }, mine.count, {.last = true});
  mesh.release();
  mesh.await_released();
}

/// A round's first shot leaves before the rank waits for the second shot of the round before.
template <class Call>
TREERING_DEVICE void two_shot_staged(Call& call, Mesh<Call>& mesh) {
  const int n = call.size(), me = call.rank();
  Rounds next = call.rounds(call.whole(), n);
  const auto send_first = [&] { mesh.send([&](int rank) { return next.chunk(rank); }); };

  send_first();
  while (next.more()) {
    const Rounds round = next;
    const auto mine = [&](int /*peer*/) { return round.chunk(me); };
    if (!mesh.await_posts(mine) || !mesh.await_credits(mine)) return;
    call.fold(
        n, [&](int rank) { return mesh.contribution(rank, mine(rank)); },  //
        n, [&](int rank) { return mesh.destination(rank, mine(rank)); }, mine(me).count,
        {.own = me, .last = true});
    mesh.release(mine);
    mesh.post(mine);  // second shot
    next.next();
    if (next.more()) send_first();
    mesh.collect([&](int rank) { return round.chunk(rank); });
  }
}

template <class Call>
TREERING_DEVICE void all_reduce_two_shot(Call& call) {
  Mesh mesh(call);
  const auto everything = [&](int /*peer*/) { return call.whole(); };
  if (mesh.offer(Access::both, everything, everything)) return two_shot_direct(call, mesh);
  two_shot_staged(call, mesh);
}

}  // namespace treering
