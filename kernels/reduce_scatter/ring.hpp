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

template <class Group>
TREERING_DEVICE void reduce_scatter_ring(Call<Group>& call) {
  RingWire<Group> ring(call);
  const int n = call.size(), me = call.rank();
  const std::size_t count = call.args().call.count;
  for (Rounds round = call.rounds(count, 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    const auto input = [&](int step) {
      return call.input((me - 1 - step + 2 * n) % n * count + chunk.begin);
    };
    ring.send(input(0), chunk);
    for (int step = 1; step < n - 1; ++step) ring.recv_reduce_send(input(step), chunk);
    ring.recv_reduce_copy(input(n - 1), call.output(chunk.begin), chunk);
  }
}

}  // namespace treering
