#pragma once

// Ring broadcast: the root's array goes round the ring in pieces, from the root to the rank before it.
//
//     root ──► root+1 ──► root+2 ──► … ──► root-1
//      c          b          a                     pieces follow one another: all wires are busy
//
// n-2 + pieces steps; every rank but the last sends the whole array once.

#include "kernels/wire/ring.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void broadcast_ring(Call& call) {
  RingWire ring(call);
  const int n = call.size(), distance = (call.rank() - call.root() + n) % n;
  for (Rounds round = call.rounds(call.whole(), 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    if (distance == 0)
      ring.copy_send(call.input(chunk.begin), call.output(chunk.begin), chunk);
    else if (distance < n - 1)
      ring.recv_copy_send(call.output(chunk.begin), chunk);
    else
      ring.recv(call.output(chunk.begin), chunk);
  }
}

}  // namespace treering
