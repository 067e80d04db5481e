#pragma once

// Direct scatter: everyone takes its part of the root's array, out of that array where it is registered; else the
// root sends it.
//
//                  ┌──► 1: b
//     root: a b c ─┤                one step, (n-1)/n of the array sent by the root
//                  └──► 2: c

#include "kernels/wire/star.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void scatter_direct(Call& call) {
  Star(call).hand_out([&](int rank) { return call.input_part(rank); });
}

}  // namespace treering
