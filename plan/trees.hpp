#pragma once

// Two binary trees over the same ranks, each of which carries half of an array. A rank that is inside one
// of them is a leaf of the other (but for one rank if n is even), so that everybody receives, sends and
// adds about as much: one tree alone would leave half of the ranks, its leaves, with nothing to send.
//
//     place 0 is the root of both; the other places 1 … n-1 form
//
//          tree 0:  0                          tree 1:  0
//                   │                                   │            n = 7
//                   4                                   3
//                 ╱   ╲                               ╱   ╲
//                2     6                             5     1
//               ╱ ╲   ╱                             ╱ ╲     ╲
//              1   3 5                             6   4     2
//
// Tree 0 is in order: odd places are leaves, and a place that is 2ᵏ times an odd number is k levels above them.
// Tree 1 is its mirror image if n is odd, else the same, moved on by one.
// P. Sanders, J. Speck, J. L. Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009.

#include "treering/types.hpp"

namespace treering {

/// Neighbours of a rank in one of the trees; -1 where there is none.
struct TreePlace {
  int parent;
  int first_child, second_child;
};

/// Steps from a leaf to the root, at most.
TREERING_PORTABLE constexpr int tree_depth(int n) {
  int depth = 0;
  while ((1 << depth) < n) ++depth;
  return depth;
}

/// Parent of a place of the tree that is in order.
TREERING_PORTABLE constexpr int in_order_parent(int place, int n) {
  if (place == 0) return -1;
  const int level = place & -place;
  const int above = (place ^ level) | (level << 1);  // on the other side of it lies the sibling
  return above < n ? above : place ^ level;          // the right edge hangs where there is a place
}

/// The child that lies before a place; -1 for leaves.
TREERING_PORTABLE constexpr int in_order_before(int place, int /*n*/) {
  const int level = place & -place;
  return level > 1 ? place - level / 2 : -1;
}

/// The child that lies behind a place, as far down as the right edge demands; -1 if there is none. The root's
/// only child.
TREERING_PORTABLE constexpr int in_order_behind(int place, int n) {
  int step = place == 0 ? 1 << tree_depth(n) : place & -place;
  while (step > 1) {
    step /= 2;
    if (place + step < n) return place + step;
  }
  return -1;
}

/// The place of tree 0 that a place of tree `tree` stands for, and back: trees differ in names only.
TREERING_PORTABLE constexpr int to_first_tree(int place, int n, int tree) {
  if (tree == 0 || place <= 0) return place;
  if (n % 2 == 1) return n - place;
  return place == n - 1 ? 1 : place + 1;
}
TREERING_PORTABLE constexpr int from_first_tree(int place, int n, int tree) {
  if (tree == 0 || place <= 0) return place;
  if (n % 2 == 1) return n - place;
  return place == 1 ? n - 1 : place - 1;
}

/// Where `rank` of `n` stands in tree 0 or 1 whose root is `root`.
TREERING_PORTABLE constexpr TreePlace tree_place(int rank, int n, int root, int tree) {
  const int place = to_first_tree((rank - root + n) % n, n, tree);
  const auto rank_of = [&](int other) {
    return other < 0 ? -1 : (from_first_tree(other, n, tree) + root) % n;
  };
  return {rank_of(in_order_parent(place, n)), rank_of(place == 0 ? -1 : in_order_before(place, n)),
          rank_of(in_order_behind(place, n))};
}

}  // namespace treering
