// The generator of pairwise coverings, against the product.

#include "tests/ranks/covering.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/ranks/cases.hpp"

namespace treering::test {
namespace {

using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;

void add_pairs(const Row& row, std::set<Pair>& pairs) {
  for (std::size_t a = 0; a < row.size(); ++a)
    for (std::size_t b = a + 1; b < row.size(); ++b) pairs.emplace(a, row[a], b, row[b]);
}

/// Exactly the pairs that any row of the space has are covered, by rows of the space.
void expect_covering(const Space& space, const std::vector<Row>& rows) {
  std::set<Pair> feasible, covered;
  for_each_row(space, [&](const Row& row) {
    ASSERT_TRUE(space.holds(row));
    add_pairs(row, feasible);
  });
  for (const Row& row : rows) {
    ASSERT_EQ(row.size(), space.values.size());
    for (std::size_t d = 0; d < row.size(); ++d) ASSERT_LT(row[d], space.values[d]);
    EXPECT_TRUE(space.holds(row));
    add_pairs(row, covered);
  }
  EXPECT_EQ(covered, feasible);
}

bool always(std::size_t, std::size_t, std::size_t, std::size_t) { return true; }

TEST(Covering, NeedsNineOfTwentySevenOrLittleMore) {
  const Space space{{3, 3, 3}, always};
  const auto rows = pairwise_covering(space, 1);
  expect_covering(space, rows);
  EXPECT_GE(rows.size(), 9u);
  EXPECT_LE(rows.size(), 12u);
}

TEST(Covering, LeavesOutWhatDoesNotGoTogether) {
  // 0 of the first only with 0 of the second; and nothing in the third goes with 2 of the first and 2 of the second:
  // that pair is in no row, though its two values go together.
  const Space space{{3, 3, 2, 4}, [](auto a, auto x, auto b, auto y) {
                      if (a == 0 && b == 1 && x == 0) return y == 0;
                      if (a == 0 && b == 2 && x == 2) return y == 0;
                      if (a == 1 && b == 2 && x == 2) return y == 1;
                      return true;
                    }};
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    const auto rows = pairwise_covering(space, seed);
    expect_covering(space, rows);
    for (const Row& row : rows) EXPECT_FALSE(row[0] == 2 && row[1] == 2);
  }
}

TEST(Covering, IsTheSameForTheSameSeed) {
  const Space space{{5, 4, 3, 2}, always};
  EXPECT_EQ(pairwise_covering(space, 7), pairwise_covering(space, 7));
  EXPECT_NE(pairwise_covering(space, 7), pairwise_covering(space, 8));
}

TEST(Covering, OfAllCallsIsSmall) {
  const CallSpace calls({2, 3, 8}, 3);  // its product can be gone through in a moment
  const auto some = pairwise_covering(calls.space(), 1);
  expect_covering(calls.space(), some);

  const CallSpace all({std::begin(team_sizes), std::end(team_sizes)});
  const auto rows = pairwise_covering(all.space(), 1);
  std::uint64_t product = 0;
  for_each_row(all.space(), [&](const Row&) { ++product; });
  EXPECT_LT(rows.size(), 1000u);
  EXPECT_GT(product, 1000u * rows.size());
  std::cout << rows.size() << " of " << product << " cases\n";
}

}  // namespace
}  // namespace treering::test
