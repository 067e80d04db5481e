// The arena: what it hands out, what it costs, and what it says when there is no more.

#include "kernels/exec/host/arena.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/free_memory.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

using testing::HasSubstr;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB, page = 4 * KiB;

std::size_t backed_bytes(const Arena& arena) {
  struct stat status {};
  EXPECT_EQ(fstat(arena.descriptor(), &status), 0);
  return static_cast<std::size_t>(status.st_blocks) * 512;
}

std::size_t offset_of(const Arena& arena, const void* pointer) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - arena.base());
}

/// Runs in a forked child, which must leave with 0.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(Arena, IsSparse) {
  const Arena arena(std::size_t{64} << 30);
  EXPECT_EQ(arena.size(), std::size_t{64} << 30);
  EXPECT_EQ(backed_bytes(arena), page);  // the header
}

TEST(Arena, BeginsWithAHeader) {
  const Arena arena(64 * MiB);
  const auto& header = *reinterpret_cast<const ArenaHeader*>(arena.base());
  EXPECT_EQ(header.magic, arena_magic);
  EXPECT_EQ(header.size, 64 * MiB);
}

TEST(Arena, CannotBeCutShort) {
  const Arena arena(64 * MiB);
  EXPECT_EQ(ftruncate(arena.descriptor(), 0), -1);
}

TEST(Arena, AllocatesZeroedAlignedDistinctMemory) {
  Arena arena(64 * MiB);
  std::vector<std::byte*> blocks;
  for (std::size_t bytes : {0, 1, 255, 256, 4096, 4097, 100000}) {
    auto* const block = static_cast<std::byte*>(arena.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0u);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(block[i], std::byte{0}) << i;
    std::memset(block, 0xa5, bytes);
    const auto around = arena.allocation_of(block);
    ASSERT_TRUE(around);
    EXPECT_EQ(around->begin, block);
    EXPECT_EQ(around->bytes, std::max<std::size_t>(bytes, 1));
    for (const std::byte* other : blocks)
      EXPECT_NE(offset_of(arena, other) / page, offset_of(arena, block) / page);
    blocks.push_back(block);
  }
  for (std::byte* block : blocks) arena.deallocate(block);
}

TEST(Arena, SuccessiveAllocationsDifferInTheirOffsetWithinAPage) {
  Arena arena(1024 * MiB);
  std::vector<std::size_t> offsets;
  for (int i = 0; i < 100; ++i) offsets.push_back(offset_of(arena, arena.allocate(1 * MiB)));
  for (std::size_t i = 0; i < offsets.size(); ++i)
    for (std::size_t j = i + 1; j < std::min(i + 16, offsets.size()); ++j)
      EXPECT_NE(offsets[i] % page, offsets[j] % page) << i << " " << j;
}

TEST(Arena, SuccessiveAllocationsDifferEvenWhereTheSameHoleIsFilledAgain) {
  Arena arena(64 * MiB);
  std::size_t before = page;
  for (int i = 0; i < 40; ++i) {
    void* const block = arena.allocate(page);
    const std::size_t offset = offset_of(arena, block);
    EXPECT_NE(offset % page, before % page);
    before = offset;
    arena.deallocate(block);
  }
}

TEST(Arena, GivesMemoryBackAndZeroesIt) {
  Arena arena(64 * MiB);
  void* const block = arena.allocate(16 * MiB);
  EXPECT_GE(backed_bytes(arena), 16 * MiB);
  std::memset(block, 0xff, 16 * MiB);
  arena.deallocate(block);
  EXPECT_EQ(backed_bytes(arena), page);
  const auto* const again = static_cast<const std::byte*>(arena.allocate(16 * MiB));
  for (std::size_t i = 0; i < 16 * MiB; i += 61) ASSERT_EQ(again[i], std::byte{0}) << i;
}

TEST(Arena, JoinsNeighbouringHoles) {
  Arena arena(64 * MiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 15; ++i) blocks.push_back(arena.allocate(4 * MiB - page));
  for (std::size_t i : {1, 3, 2, 0, 14, 12, 13, 5, 7, 6, 4, 10, 8, 11, 9})
    arena.deallocate(blocks[i]);
  EXPECT_NO_THROW(arena.deallocate(arena.allocate(64 * MiB - 3 * page)));
}

TEST(Arena, RandomAllocationsNeverOverlap) {
  Arena arena(256 * MiB);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::vector<std::pair<unsigned char*, std::size_t>> live;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() < 40 && random() % 3 != 0) {
      const std::size_t bytes = random() % (200 * KiB) + 1;
      auto* const block = static_cast<unsigned char*>(arena.allocate(bytes));
      ASSERT_EQ(block[0], 0);
      ASSERT_EQ(block[bytes - 1], 0);
      block[0] = block[bytes - 1] = static_cast<unsigned char>(offset_of(arena, block) / 256);
      live.emplace_back(block, bytes);
    } else if (!live.empty()) {
      std::swap(live[random() % live.size()], live.back());
      const auto [block, bytes] = live.back();
      const auto mark = static_cast<unsigned char>(offset_of(arena, block) / 256);
      ASSERT_EQ(block[0], mark);
      ASSERT_EQ(block[bytes - 1], mark);
      arena.deallocate(block);
      live.pop_back();
    }
  }
  for (const auto& [block, bytes] : live) arena.deallocate(block);
  EXPECT_EQ(backed_bytes(arena), page);
}

TEST(Arena, ServesManyThreads) {
  Arena arena(256 * MiB);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&arena, t] {
      for (int i = 0; i < 200; ++i) {
        const auto bytes = static_cast<std::size_t>(1000 * t + i + 1);
        auto* const block = static_cast<int*>(arena.allocate(bytes * sizeof(int)));
        for (std::size_t k = 0; k < bytes; ++k) {
          ASSERT_EQ(block[k], 0);
          block[k] = t;
        }
        EXPECT_TRUE(arena.allocation_of(block + bytes - 1));
        arena.deallocate(block);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backed_bytes(arena), page);
}

TEST(Arena, FindsTheAllocationAroundAPointer) {
  Arena arena(64 * MiB);
  auto* const block = static_cast<std::byte*>(arena.allocate(1000));
  EXPECT_EQ(arena.allocation_of(block + 999)->begin, block);
  EXPECT_FALSE(arena.allocation_of(block + 1000));
  EXPECT_FALSE(arena.allocation_of(block - 1));
  EXPECT_FALSE(arena.allocation_of(arena.base()));
  EXPECT_FALSE(arena.allocation_of(&arena));
  EXPECT_FALSE(arena.allocation_of(nullptr));
  EXPECT_FALSE(arena.allocation_of(arena.base() + arena.size()));
  arena.deallocate(block);
  EXPECT_FALSE(arena.allocation_of(block));
}

TEST(Arena, KnowsWhatItContains) {
  const Arena arena(64 * MiB);
  EXPECT_TRUE(arena.contains(arena.base(), arena.size()));
  EXPECT_TRUE(arena.contains(arena.base() + 1, arena.size() - 1));
  EXPECT_FALSE(arena.contains(arena.base() + 1, arena.size()));
  EXPECT_FALSE(arena.contains(arena.base() - 1, 1));
  EXPECT_FALSE(arena.contains(arena.base() + arena.size(), 0));
  EXPECT_FALSE(arena.contains(arena.base() + 1, static_cast<std::size_t>(-1)));
}

TEST(Arena, BacksPartsLater) {
  Arena arena(256 * MiB);
  auto* const block = static_cast<std::byte*>(arena.allocate(100 * MiB, Backing::later));
  EXPECT_EQ(backed_bytes(arena), page);
  arena.back(block + 50 * MiB, 64 * KiB);
  const std::size_t backed = backed_bytes(arena);
  EXPECT_GE(backed, 64 * KiB + page);
  EXPECT_LE(backed, 64 * KiB + 3 * page);
  block[50 * MiB] = block[50 * MiB + 64 * KiB - 1] = std::byte{7};
  arena.back(block + 50 * MiB, 64 * KiB);
  EXPECT_EQ(backed_bytes(arena), backed);
  EXPECT_EQ(block[50 * MiB], std::byte{7});
  EXPECT_THROW(arena.back(block + 50 * MiB, 51 * MiB), Error);
  EXPECT_THROW(arena.back(block - page, 1), Error);
  arena.deallocate(block);
  EXPECT_EQ(backed_bytes(arena), page);
}

TEST(Arena, SaysWhenItHasNoRoom) {
  Arena arena(16 * MiB);
  void* const block = arena.allocate(6 * MiB);
  try {
    arena.allocate(12 * MiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("12 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("16 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("TREERING_ARENA"));
  }
  EXPECT_THROW(arena.allocate(static_cast<std::size_t>(-1)), Error);
  EXPECT_THROW(arena.allocate(16 * MiB, Backing::later), Error);
  arena.deallocate(block);
  EXPECT_NO_THROW(arena.allocate(12 * MiB));
}

TEST(Arena, SaysWhenTheMachineHasNoMemory) {
  const std::size_t too_much = 4 * free_memory();
  Arena arena(2 * too_much);
  try {
    arena.allocate(too_much);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_THAT(error.what(), HasSubstr("are free on this machine"));
  }
  EXPECT_EQ(backed_bytes(arena), page);
  EXPECT_NO_THROW(arena.allocate(1 * MiB));  // the room was given back
}

TEST(Arena, RespectsTheLimitOnFileSizes) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{32 * MiB, 32 * MiB};
              setrlimit(RLIMIT_FSIZE, &limit);
              if (default_arena_size() != 32 * MiB) return 1;
              try {
                const Arena arena(64 * MiB);
                return 2;
              } catch (const Error& error) {
                if (std::strstr(error.what(), "ulimit -f") == nullptr) return 3;
              }
              Arena arena(32 * MiB);
              return arena.allocate(30 * MiB) != nullptr ? 0 : 4;
            }),
            0);
}

TEST(Arena, IsNotSharedWithAForkedChild) {
  Arena arena(64 * MiB);
  auto* const block = static_cast<std::byte*>(arena.allocate(1 * MiB));
  block[0] = std::byte{1};
  EXPECT_EQ(in_child([&] {
              arena.deallocate(block);  // the parent's memory stays
              std::ifstream maps("/proc/self/maps");
              for (std::string line; std::getline(maps, line);)
                if (line.find("memfd:treering") != std::string::npos) return 1;
              for (int attempt = 0; attempt < 2; ++attempt) try {
                  if (attempt == 0) arena.allocate(1);
                  if (attempt == 1) arena.back(block, 1);
                  return 2;
                } catch (const Error& error) {
                  if (error.code() != ErrorCode::unsupported) return 3;
                  if (std::strstr(error.what(), "forked") == nullptr) return 4;
                }
              return 0;
            }),
            0);
  EXPECT_EQ(block[0], std::byte{1});
  EXPECT_TRUE(arena.allocation_of(block));
}

TEST(Arena, OfTheProcessIsRefusedInAForkedChild) {
  Arena& arena = process_arena();
  EXPECT_EQ(&arena, &process_arena());
  EXPECT_EQ(in_child([] {
              try {
                process_arena().allocate(1);
                return 1;
              } catch (const Error& error) {
                return error.code() == ErrorCode::unsupported ? 0 : 2;
              }
            }),
            0);
}

TEST(Arena, CanBeMadeAndDestroyedOften) {
  for (int i = 0; i < 1000; ++i) {
    Arena arena(std::size_t{64} << 30);
    arena.allocate(1);
  }
}

}  // namespace
}  // namespace treering
