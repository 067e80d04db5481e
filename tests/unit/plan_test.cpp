// How arrays are cut into parts, rounds and chunks.

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <vector>

#include "plan/chunks.hpp"

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

}  // namespace
}  // namespace treering
