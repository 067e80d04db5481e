#pragma once

// Ring reduce: a partial sum goes round the ring in pieces, from the rank behind the root to the root, and
// every rank it passes adds its own.
//
//     root+1 ──► root+2 ──► … ──► root-1 ──► root
//       c          b + own          a + own          pieces follow one another: all wires are busy
//
// n-2 + pieces steps; every rank but the root sends the whole array once. Only the root's output is written.

#include "kernels/wire/ring.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void reduce_ring(Call& call) {
  RingWire ring(call);
  const int n = call.size(), distance = (call.rank() - call.root() + n) % n;
  for (Rounds round = call.rounds(call.whole(), 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    const std::byte* input = call.input(chunk.begin);
    if (distance == 0)
      ring.recv_reduce_copy(input, call.output(chunk.begin), chunk);
    else if (distance > 1)
      ring.recv_reduce_send(input, chunk);
    else
      ring.send(input, chunk);
  }
}

}  // namespace treering
