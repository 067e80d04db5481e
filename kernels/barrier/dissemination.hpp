#pragma once

// Dissemination barrier: in round k everyone signals the rank 2ᵏ further on and waits for the one
// 2ᵏ back. After ⌈log₂ n⌉ rounds everyone has heard, directly or not, from everyone.
//
//     round 0:  0 → 1 → 2 → 3 → 4 → 0        round 1:  0 → 2 → 4 → 1 → 3 → 0        round 2: by 4
//
// D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization, 1988.

#include "kernels/wire/wire.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void barrier_dissemination(Call& call) {
  const int n = call.size(), me = call.rank();
  for (int distance = 1; distance < n; distance *= 2) {
    Wire<Call> to(call, (me + distance) % n), from(call, (me + n - distance) % n);
    to.await_credit();
    if (!call.agree()) return;
    to.post(0);
    from.await_post();
    if (!call.agree()) return;
    from.release();
  }
}

}  // namespace treering
