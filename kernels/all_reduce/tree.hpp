#pragma once

// Tree all-reduce: up two trees, whose common root then has the sum, and down again. Each tree carries half of
// the array, in pieces; sums go down while later pieces still come up.
//
//        leaves            root            leaves
//        ╲  ╱ ╲  ╱     ╱   sum   ╲        ╱  ╲ ╱  ╲
//         up: reduce  ►           ►  down: broadcast        2 log₂ n + pieces steps, while a ring
//                                                           takes 2(n-1): for many ranks
//
// A rank sends and receives about twice the array. P. Sanders, J. Speck, J. L. Träff, 2009 (plan/trees.hpp).

#include "kernels/wire/tree.hpp"

namespace treering {

template <class Call>
TREERING_DEVICE void all_reduce_tree(Call& call) {
  TreeWire first(call, 0), second(call, 1);
  // Down follows up as many rounds later as a piece needs to reach the root: so nobody waits for it.
  Rounds up = call.rounds(call.whole(), 2), down = up;
  for (int ahead = 0; down.more(); ++ahead) {
    if (up.more()) {
      first.reduce(up.chunk(0));
      second.reduce(up.chunk(1));
      up.next();
    }
    if (ahead < tree_depth(call.size())) continue;
    first.broadcast_result(down.chunk(0));
    second.broadcast_result(down.chunk(1));
    down.next();
  }
}

}  // namespace treering
