#pragma once

// Tree broadcast: each half of the array goes down one of two trees, in pieces.
//
//              root
//             ╱    ╲            a rank inside one tree is a leaf of the other, so everyone receives the
//        tree 0    tree 1       whole array once and sends it about once
//        ╱  ╲       ╱  ╲
//
// log₂ n + pieces steps.

#include "kernels/wire/tree.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void broadcast_tree(Call& call) {
  TreeWire first(call, 0), second(call, 1);
  for (Rounds round = call.rounds(call.whole(), 2); round.more(); round.next()) {
    first.broadcast(round.chunk(0));
    second.broadcast(round.chunk(1));
  }
}

}  // namespace treering
