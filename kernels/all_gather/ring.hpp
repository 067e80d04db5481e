#pragma once

// Ring all-gather: everyone's part goes once round the ring, and everyone it passes keeps a copy:
// the second half of a ring all-reduce.
//
//     step 0          step 1                  …    step n-1
//     own part ──►    part me-1, kept ──►          part me+1, kept
//
// n-1 steps; (n-1)/n of the output sent by each rank.

#include "kernels/wire/ring.hpp"

namespace treering {

template <class Group>
TREERING_DEVICE void all_gather_ring(Call<Group>& call) {
  RingWire<Group> ring(call);
  const int n = call.size(), me = call.rank();
  const std::size_t count = call.args().call.count;
  for (Rounds round = call.rounds(count, 1); round.more(); round.next()) {
    const Chunk chunk = round.chunk(0);
    const auto output = [&](int step) {
      return call.output((me - step + n) % n * count + chunk.begin);
    };
    ring.copy_send(call.input(chunk.begin), output(0), chunk);
    for (int step = 1; step < n - 1; ++step) ring.recv_copy_send(output(step), chunk);
    ring.recv(output(n - 1), chunk);
  }
}

}  // namespace treering
