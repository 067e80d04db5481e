// How arrays are cut into parts, rounds and chunks.

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "plan/chunks.hpp"
#include "plan/neighbours.hpp"
#include "plan/trees.hpp"

namespace treering {
namespace {

constexpr std::size_t grains[] = {1, 4, cut_grain};

TEST(PartOf, CoversARunOnceAndInOrder) {
  for (const std::size_t grain : grains)
    for (const std::size_t begin : {0, 7})
      for (std::size_t parts = 1; parts <= 17; ++parts)
        for (std::size_t count = 0; count <= 5 * cut_grain; ++count) {
          std::size_t next = begin;
          for (std::size_t i = 0; i < parts; ++i) {
            const Chunk part = part_of({begin, count}, i, parts, grain);
            ASSERT_EQ(part.begin, next)
                << count << " in " << parts << " by " << grain << ", part " << i;
            next += part.count;
          }
          ASSERT_EQ(next, begin + count) << count << " in " << parts << " by " << grain;
        }
}

TEST(PartOf, CutsAtGrainsAndEvenly) {
  for (const std::size_t grain : grains)
    for (std::size_t parts = 1; parts <= 9; ++parts)
      for (std::size_t count = 0; count <= 5 * cut_grain; ++count) {
        std::size_t least = count, most = 0;
        for (std::size_t i = 0; i < parts; ++i) {
          const Chunk part = part_of({100, count}, i, parts, grain);
          if (part.count != 0) {
            ASSERT_EQ((part.begin - 100) % grain, 0U);
          }
          least = part.count < least ? part.count : least;
          most = part.count > most ? part.count : most;
        }
        ASSERT_LT(most - least, 2 * grain) << count << " in " << parts << " by " << grain;
      }
}

TEST(PartOf, IsExactForKnownCuts) {
  const auto expect = [](Chunk chunk, std::size_t begin, std::size_t count) {
    EXPECT_EQ(chunk.begin, begin);
    EXPECT_EQ(chunk.count, count);
  };
  expect(part_of({0, 10}, 0, 3, 1), 0, 4);
  expect(part_of({0, 10}, 1, 3, 1), 4, 3);
  expect(part_of({0, 10}, 2, 3, 1), 7, 3);
  expect(part_of({5, 130}, 0, 2, 64), 5, 128);  // three grains: two and one
  expect(part_of({5, 130}, 1, 2, 64), 133, 2);
  expect(part_of({0, 2}, 2, 4, 1), 2, 0);  // more parts than elements
}

TEST(PartOf, IsExactPast32Bits) {
  const std::size_t count = (std::size_t{1} << 40) + 12345;
  std::size_t next = 3;
  for (std::size_t i = 0; i < 1000; ++i) {
    const Chunk part = part_of({3, count}, i, 1000, cut_grain);
    ASSERT_EQ(part.begin, next);
    next += part.count;
  }
  EXPECT_EQ(next, 3 + count);
}

/// Walks all blocks' rounds through an array and checks every promise of chunks.hpp. Returns the
/// rounds.
std::size_t walk(std::size_t count, int blocks, int parts, std::size_t chunk) {
  SCOPED_TRACE(testing::Message() << count << " elements, " << blocks << " blocks, " << parts
                                  << " parts, chunks of " << chunk);
  std::size_t next = 0, rounds = 0;
  for (int block = 0; block < blocks; ++block) {
    const Chunk share = part_of({0, count}, static_cast<std::size_t>(block),
                                static_cast<std::size_t>(blocks), cut_grain);
    const std::size_t full = chunk * static_cast<std::size_t>(parts);
    const std::size_t expected = share.count == 0 ? 1 : (share.count + full - 1) / full;
    std::size_t seen = 0;
    for (Rounds round(share, parts, chunk); round.more(); round.next(), ++seen) {
      const std::size_t first = next;
      for (int i = 0; i < parts; ++i) {
        const Chunk piece = round.chunk(i);
        EXPECT_EQ(piece.begin, next);
        EXPECT_LE(piece.count, chunk);
        next += piece.count;
        if (testing::Test::HasFailure()) return 0;
      }
      const std::size_t moved = next - first;
      EXPECT_EQ(moved, seen + 1 < expected ? full : share.count - seen * full);
      // Whole lines, where there are enough of them and slots hold whole lines.
      if (chunk % cut_grain == 0 && moved >= static_cast<std::size_t>(parts) * cut_grain)
        for (int i = 0; i < parts; ++i)
          if (round.chunk(i).count != 0) {
            EXPECT_EQ(round.chunk(i).begin % cut_grain, 0U);
          }
    }
    EXPECT_EQ(seen, expected);
    rounds += seen;
  }
  EXPECT_EQ(next, count);
  return rounds;
}

TEST(Rounds, CoverEveryElementOnceAndInOrder) {
  for (const std::size_t count :
       {0, 1, 2, 3, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1000, 4095, 4096, 4097, 10007})
    for (const int blocks : {1, 2, 3, 5, 8})
      for (const int parts : {1, 2, 3, 4, 5, 7, 8, 16})
        for (const std::size_t chunk : {1, 3, 64, 65, 100, 128, 192, 1000, 4096}) {
          walk(count, blocks, parts, chunk);
          if (HasFailure()) return;
        }
}

TEST(Rounds, CoverArraysOfRandomShape) {
  constexpr unsigned seed = 20240607;
  std::mt19937_64 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const auto up_to = [&](std::size_t most) { return random() % (most + 1); };
  for (int i = 0; i < 2000; ++i) {
    const int blocks = 1 + static_cast<int>(up_to(31)), parts = 1 + static_cast<int>(up_to(64));
    const std::size_t chunk = i % 2 == 0 ? 1 + up_to(5000) : cut_grain * (1 + up_to(80));
    walk(up_to(200'000), blocks, parts, chunk);
    if (HasFailure()) return;
  }
}

TEST(Rounds, OfAnEmptyArrayAreOneOfEmptyChunks) {
  EXPECT_EQ(walk(0, 1, 4, 64), 1U);
  EXPECT_EQ(walk(0, 5, 4, 64), 5U);
  Rounds rounds({17, 0}, 3, 64);
  ASSERT_TRUE(rounds.more());
  EXPECT_EQ(rounds.chunk(2).begin, 17U);
  EXPECT_EQ(rounds.chunk(2).count, 0U);
  rounds.next();
  EXPECT_FALSE(rounds.more());
}

TEST(Rounds, OfFullChunksAreCutExactly) {
  Rounds rounds({64, 400}, 3, 64);  // 192 elements a round: 192, 192, 16
  EXPECT_EQ(rounds.chunk(1).begin, 128U);
  EXPECT_EQ(rounds.chunk(1).count, 64U);
  rounds.next();
  EXPECT_EQ(rounds.chunk(0).begin, 256U);
  rounds.next();
  ASSERT_TRUE(rounds.more());
  EXPECT_EQ(rounds.chunk(0).begin, 448U);  // too few for whole lines: 6, 5, 5
  EXPECT_EQ(rounds.chunk(0).count, 6U);
  EXPECT_EQ(rounds.chunk(2).count, 5U);
  rounds.next();
  EXPECT_FALSE(rounds.more());
}

TEST(Rounds, CoverArraysPast32Bits) {
  const std::size_t past = std::size_t{1} << 32;
  walk(past + 1, 3, 4, std::size_t{1} << 20);
  walk(5 * past + 77, 2, 3, (std::size_t{1} << 24) + 1);
  walk(3 * past + 12345, 1, 2, past);  // a chunk past 32 bits
}

TEST(PieceOf, CoversARunOnceAndInOrder) {
  for (const std::size_t most : {1, 3, 64})
    for (std::size_t count = 0; count < 200; ++count) {
      std::size_t next = 9;
      const std::size_t pieces = pieces_of({9, count}, most);
      for (std::size_t i = 0; i < pieces; ++i) {
        const Chunk piece = piece_of({9, count}, i, most);
        ASSERT_EQ(piece.begin, next);
        ASSERT_GT(piece.count, 0u);
        ASSERT_LE(piece.count, most);
        next += piece.count;
      }
      ASSERT_EQ(next, 9 + count);
      ASSERT_EQ(piece_of({9, count}, pieces, most).count, 0u);
      ASSERT_EQ(piece_of({9, count}, pieces + 5, most).count, 0u);
    }
}

std::vector<int> sizes_of_trees() {
  std::vector<int> sizes;
  for (int n = 1; n <= 65; ++n) sizes.push_back(n);
  for (const int n : {127, 128, 129, 300, 1000, 1024}) sizes.push_back(n);
  return sizes;
}

int children(const TreePlace& place) {
  return (place.first_child >= 0 ? 1 : 0) + (place.second_child >= 0 ? 1 : 0);
}

TEST(Trees, AreTreesOfLeastDepthWithTheRootOnTop) {
  for (const int n : sizes_of_trees())
    for (const int root : {0, n / 2, n - 1})
      for (const int tree : {0, 1}) {
        SCOPED_TRACE(testing::Message() << n << " ranks, root " << root << ", tree " << tree);
        for (int rank = 0; rank < n; ++rank) {
          const TreePlace place = tree_place(rank, n, root, tree);
          ASSERT_EQ(place.parent < 0, rank == root);
          for (const int child : {place.first_child, place.second_child})
            if (child >= 0) {
              ASSERT_EQ(tree_place(child, n, root, tree).parent, rank);
            }
          if (place.first_child >= 0) {
            ASSERT_NE(place.first_child, place.second_child);
          }
          int steps = 0;
          for (int at = rank; at != root; ++steps) {
            ASSERT_LT(steps, tree_depth(n));
            const int parent = tree_place(at, n, root, tree).parent;
            const TreePlace above = tree_place(parent, n, root, tree);
            ASSERT_TRUE(above.first_child == at || above.second_child == at);
            at = parent;
          }
        }
      }
}

/// Nobody but the root is inside both trees, so all send about as much.
TEST(Trees, InsideOfOneIsLeafOfTheOther) {
  for (const int n : sizes_of_trees())
    for (int rank = 1; rank < n; ++rank) {
      const int in_first = children(tree_place(rank, n, 0, 0)),
                in_second = children(tree_place(rank, n, 0, 1));
      ASSERT_TRUE(in_first == 0 || in_second == 0) << rank << " of " << n;
    }
}

TEST(Trees, AreThoseOfThePicture) {
  const auto expect = [](int tree, int rank, int parent, int first, int second) {
    SCOPED_TRACE(testing::Message() << "tree " << tree << ", rank " << rank);
    const TreePlace place = tree_place(rank, 7, 0, tree);
    EXPECT_EQ(place.parent, parent);
    EXPECT_EQ(place.first_child, first);
    EXPECT_EQ(place.second_child, second);
  };
  expect(0, 0, -1, -1, 4);
  expect(0, 4, 0, 2, 6);
  expect(0, 2, 4, 1, 3);
  expect(0, 6, 4, 5, -1);
  expect(1, 0, -1, -1, 3);
  expect(1, 3, 0, 5, 1);
  expect(1, 5, 3, 6, 4);
  expect(1, 1, 3, 2, -1);
}

/// A message needs slots at both ends, so neighbours are so from both sides.
TEST(Neighbours, AreMutual) {
  struct Way {
    Collective collective;
    Algorithm algorithm;
  };
  for (const auto& [collective, algorithm] :
       {Way{Collective::all_reduce, Algorithm::ring}, Way{Collective::all_reduce, Algorithm::tree},
        Way{Collective::all_reduce, Algorithm::two_shot},
        Way{Collective::gather, Algorithm::direct}})
    for (int n = 2; n <= 9; ++n) {
      std::set<std::pair<int, int>> pairs;
      for (int rank = 0; rank < n; ++rank)
        for_each_neighbour(collective, algorithm, rank, n, n - 1, [&](int other) {
          pairs.insert({rank, other});
        });
      for (const auto& [a, b] : pairs) {
        EXPECT_NE(a, b);
        EXPECT_TRUE(pairs.contains({b, a})) << n << " ranks: " << a << ", " << b;
      }
    }
}

}  // namespace
}  // namespace treering
