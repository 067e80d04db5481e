#pragma once

// Pairwise coverings: few combinations of many dimensions' values, in which still every two values of different
// dimensions meet. Most faults need no more than two particular values.
//
//     3 × 3 × 3 = 27 combinations        9 of them hold every pair
//
//     a b c                              0 0 0   1 0 1   2 0 2
//                                        0 1 1   1 1 2   2 1 0
//                                        0 2 2   1 2 0   2 2 1

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace treering::test {

/// One combination: the number of its value in each dimension.
using Row = std::vector<std::size_t>;

/// All combinations, but those in which two values do not go together.
struct Space {
  std::vector<std::size_t> values;  ///< how many each dimension has
  /// Whether value `x` of dimension `a` and value `y` of dimension `b` go together; asked for a < b.
  std::function<bool(std::size_t a, std::size_t x, std::size_t b, std::size_t y)> together;

  bool holds(const Row&) const;
  std::uint64_t product() const;  ///< combinations, of which it holds some
};

/// Rows of the space in which every two values meet that meet in any row of the space. Found greedily; in
/// random order; the same for the same seed.
std::vector<Row> pairwise_covering(const Space&, std::uint64_t seed);

/// Calls `visit` with every row of the space, the last dimension's values following one another.
void for_each_row(const Space&, const std::function<void(const Row&)>& visit);

}  // namespace treering::test
