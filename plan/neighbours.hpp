#pragma once

// Whom a rank talks to by messages: memory for slots is needed for those pairs only.

#include "plan/trees.hpp"
#include "treering/types.hpp"

namespace treering {

/// Calls f(rank) for every rank that `rank` of `n` sends to or receives from; some maybe twice.
template <class F>
void for_each_neighbour(Collective collective, Algorithm algorithm, int rank, int n, int root,
                        F f) {
  const auto all = [&] {
    for (int other = 0; other < n; ++other)
      if (other != rank) f(other);
  };
  switch (algorithm) {
    case Algorithm::dissemination:  // messages without content
      return;
    case Algorithm::ring:
      f((rank + 1) % n);
      return f((rank + n - 1) % n);
    case Algorithm::tree:
      for (const int tree : {0, 1}) {
        const TreePlace place = tree_place(rank, n, root, tree);
        for (const int other : {place.parent, place.first_child, place.second_child})
          if (other >= 0) f(other);
      }
      return;
    default:
      return has_root(collective) && rank != root ? f(root) : all();
  }
}

}  // namespace treering
