#pragma once

// Direct gather: everyone puts its array into its part of the root's, straight where that is registered; else
// it sends it there.
//
//     1: b ──┐
//            ├─► root: a b c        one step, (n-1)/n of the result received by the root
//     2: c ──┘

#include "kernels/wire/star.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void gather_direct(Call& call) {
  Star(call).bring_in([&](int rank) { return call.output_part(rank); });
}

}  // namespace treering
