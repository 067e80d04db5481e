#pragma once

// Ring all-reduce. The array is cut into n chunks; chunk c starts its way at rank c.
//
//     ┌──►( 0 )──►( 1 )──┐     n-1 steps: each rank adds its own part to the chunk that comes by
//     │                  ▼     and passes it on; then rank c-1 holds chunk c, complete
//     └──( 3 )◄──( 2 )◄──┘     n-1 steps: the complete chunks go round and are copied
//
// 2(n-1) steps, 2(n-1)/n of the array sent by each rank: the least possible. Long arrays go in rounds
// of n chunks that each fit a message (plan/chunks.hpp). n ≥ 2: the plan sees to it.
// P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.

#include "kernels/wire/ring.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void all_reduce_ring(Call& call) {
  RingWire ring(call);
  const int n = call.size(), me = call.rank();
  for (Rounds round = call.rounds(call.whole(), n); round.more(); round.next()) {
    // The chunk that is here at a step: one further back each time (2n keeps it from going negative).
    const auto chunk = [&](int step) { return round.chunk((me - step + 2 * n) % n); };
    const auto input = [&](int step) { return call.input(chunk(step).begin); };
    const auto output = [&](int step) { return call.output(chunk(step).begin); };

    ring.send(input(0), chunk(0));
    for (int step = 1; step < n - 1; ++step) ring.recv_reduce_send(input(step), chunk(step));
    ring.recv_reduce_copy_send(input(n - 1), output(n - 1), chunk(n - 1));
    for (int step = n; step < 2 * n - 2; ++step) ring.recv_copy_send(output(step), chunk(step));
    ring.recv(output(2 * n - 2), chunk(2 * n - 2));
  }
}

}  // namespace treering
