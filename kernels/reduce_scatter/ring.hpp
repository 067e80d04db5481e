#pragma once

// Ring reduce-scatter. The input holds one part for each rank. Part p starts at rank p+1, goes
// round and grows at every rank it passes, until it arrives, whole, at rank p: the first half of a
// ring all-reduce.
//
//     step 0      step 1        …     step n-1
//     me-1 ──►    me-2 + own ──►      me + own: the result
//
// n-1 steps; (n-1)/n of the input sent by each rank.

#include "kernels/wire/ring.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void reduce_scatter_ring(Call& call) {
  RingWire ring(call);
  const int n = call.size(), me = call.rank();
  // At least one round: every call synchronises.
  for (std::size_t round = 0; round == 0 || round < call.input_rounds(); ++round) {
    // The piece that is here at a step: of the rank before me, then one further back each time.
    const auto piece = [&](int step) {
      return call.piece(call.input_part((me - 1 - step + 2 * n) % n), round);
    };
    const auto input = [&](int step) { return call.input(piece(step).begin); };

    ring.send(input(0), piece(0));
    for (int step = 1; step < n - 1; ++step) ring.recv_reduce_send(input(step), piece(step));
    const Chunk mine = piece(n - 1);
    ring.recv_reduce_copy(input(n - 1), call.output(mine.begin - call.input_part(me).begin), mine);
  }
}

}  // namespace treering
