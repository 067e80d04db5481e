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

template <class Call>
TREERING_DEVICE void all_gather_ring(Call& call) {
  RingWire ring(call);
  const int n = call.size(), me = call.rank();
  const std::size_t own = call.output_part(me).begin;
  // At least one round: every call synchronises.
  for (std::size_t round = 0; round == 0 || round < call.output_rounds(); ++round) {
    // The piece that is here at a step: of one rank further back each time.
    const auto piece = [&](int step) {
      return call.piece(call.output_part((me - step + n) % n), round);
    };
    const auto output = [&](int step) { return call.output(piece(step).begin); };

    ring.copy_send(call.input(piece(0).begin - own), output(0), piece(0));
    for (int step = 1; step < n - 1; ++step) ring.recv_copy_send(output(step), piece(step));
    ring.recv(output(n - 1), piece(n - 1));
  }
}

}  // namespace treering
