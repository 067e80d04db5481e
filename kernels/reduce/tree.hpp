#pragma once

// Tree reduce: each half of the array goes up one of two trees, in pieces; every rank adds its own to what
// its children bring.
//
//        ╲  ╱       ╲  ╱
//        tree 0    tree 1       a rank inside one tree is a leaf of the other
//             ╲    ╱
//              root             only its output is written
//
// log₂ n + pieces steps.

#include "kernels/wire/tree.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void reduce_tree(Call& call) {
  TreeWire first(call, 0), second(call, 1);
  for (Rounds round = call.rounds(call.whole(), 2); round.more(); round.next()) {
    first.reduce(round.chunk(0));
    second.reduce(round.chunk(1));
  }
}

}  // namespace treering
