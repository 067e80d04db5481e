#pragma once

// Direct broadcast: everyone reads the root's array where that is registered; else the root sends it to
// everyone.
//
//              ┌──► 1
//     root ────┼──► 2          one step, (n-1) times the array sent by the root: for few ranks
//              └──► 3

#include "kernels/wire/star.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void broadcast_direct(Call& call) {
  Star(call).hand_out([&](int /*rank*/) { return call.whole(); });
}

}  // namespace treering
