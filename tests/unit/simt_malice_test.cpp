// The malice of the `simt` execution: each kind finds a fault that is planted here, lets the correct
// program pass, and when it is off finds nothing.

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/exec/simt/device.hpp"
#include "tests/unit/simt_fixture.hpp"

namespace treering {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds short_patience(20);

/// Two ranks that meet, block by block.
struct Meeting {
  std::array<std::array<std::uint64_t, 4>, 2> flags{};  // [rank][block]

  simt::Kernel rank(int me, std::uint64_t meeting = 1) {
    return [this, me, meeting](SimtGroup& group) {
      const int block = group.block();
      if (group.is_leader()) group.raise(Site::post, flags[me][block], meeting);
      await(group, Site::post, 1 - me, flags[1 - me][block], meeting);
      group.sync();
    };
  }
};

// ---- slots

TEST_F(Simt, SlotsThatAreTooFewStallRanksLaunchedOneAfterTheOther) {
  const auto meet = [](int slots) {
    simt::configure({.malice = {.slots = slots}});
    Meeting meeting;
    SimtQueue first, second;
    first.launch(meeting.rank(0), {.blocks = 2, .threads = 3, .rank = 0});
    second.launch(meeting.rank(1), {.blocks = 2, .threads = 3, .rank = 1});
    simt::run_all();
  };
  EXPECT_NO_THROW(meet(0));
  EXPECT_NO_THROW(meet(3)) << "two blocks meet and end, and then the other two";
  const Error error = error_of([&] { meet(2); });
  EXPECT_EQ(error.code(), ErrorCode::stuck);
  EXPECT_THAT(error.ranks(), ElementsAre(0, 1));
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rank 0, block 1: thread 0 waits for the post of rank 1"),
                    HasSubstr("rank 1, block 0: has not begun: no slot is free")));
  EXPECT_NO_THROW(meet(3)) << "all slots are free again";
}

TEST_F(Simt, BlocksThatNeedNobodyTakeTurns) {
  simt::configure({.malice = {.slots = 2}});
  std::array<int, 10> done{};
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.is_leader()) ++done[group.block()];
      },
      {.blocks = 10, .threads = 4});
  queue.copy(done.data() + 9, done.data(), sizeof(int));
  simt::run_all();
  EXPECT_THAT(done, ::testing::Each(1));
}

TEST_F(Simt, RefusesToRunTogetherWhatNeverFits) {
  simt::configure({.malice = {.slots = 3}});
  const auto device = make_simt_device();
  EXPECT_EQ(device->blocks(2, 2), 1);
  const RankView view{};
  const Launch launch{.view = &view, .args = {}, .blocks = 2};
  const std::array queues{device->create_queue(), device->create_queue()};
  const Error error = error_of([&] {
    device->launch_together(std::array{queues[0].get(), queues[1].get()},
                            std::array{launch, launch});
  });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("4 blocks are to run together, but simt has slots for 3"));
}

// ---- hardware queues

TEST_F(Simt, SharedHardwareQueueStallsLaunchesDepthFirst) {
  const auto meet_twice = [](int hardware_queues, bool depth_first) {
    simt::configure({.malice = {.hardware_queues = hardware_queues}});
    Meeting meeting;
    std::array<SimtQueue, 2> queues;
    const auto launch = [&](int rank, std::uint64_t time) {
      queues[rank].launch(meeting.rank(rank, time), {.blocks = 1, .threads = 3, .rank = rank});
    };
    for (const int a : {0, 1})
      for (const int b : {0, 1}) depth_first ? launch(a, b + 1) : launch(b, a + 1);
    simt::run_all();
  };
  EXPECT_NO_THROW(meet_twice(0, true));
  EXPECT_NO_THROW(meet_twice(2, true));
  EXPECT_NO_THROW(meet_twice(1, false));
  const Error error = error_of([&] { meet_twice(1, true); });
  EXPECT_EQ(error.code(), ErrorCode::stuck);
  EXPECT_THAT(
      error.what(),
      AllOf(HasSubstr("rank 0, block 0: thread 0 waits for the post of rank 1"),
            HasSubstr("rank 1: its kernel is behind another stream's work in its hardware queue")));
}

// ---- calls that wait for kernels

/// Makes a call of the host `before` or while a kernel waits for another that is launched after it.
void call_while_waiting(const std::function<void()>& call, bool before) {
  Meeting meeting;
  SimtQueue first, second;
  if (before) call();
  first.launch(meeting.rank(0), {.blocks = 1, .threads = 3, .rank = 0});
  if (!before) call();
  second.launch(meeting.rank(1), {.blocks = 1, .threads = 3, .rank = 1});
  first.synchronize();
  second.synchronize();
}

TEST_F(Simt, CallsThatWaitForKernelsAreFound) {
  const auto device = make_simt_device();
  SimtQueue other;
  void* memory = nullptr;
  int from = 1, to = 0;
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"an allocation", [&] { memory = device->allocate(100); }},
      {"a copy", [&] { device->copy_now(&to, &from, sizeof to); }},
      {"a deallocation", [&] { device->deallocate(std::exchange(memory, nullptr)); }},
      {"a registration of host memory", [&] { device->device_view(&from, sizeof from); }},
      {"the end of a registration of host memory",
       [&] { device->release_view(&from, sizeof from); }},
      {"the first launch of a kernel",
       [&] { other.launch([](SimtGroup&) {}, {.blocks = 1, .threads = 1}); }},
  };
  for (const bool on : {false, true})
    for (const bool before : {true, false})
      for (const auto& [name, call] : calls) {
        simt::configure({.patience = short_patience, .malice = {.synchronizing = on}});
        if (before || !on) {
          EXPECT_NO_THROW(call_while_waiting(call, before)) << name;
          continue;
        }
        const Error error = error_of([&] { call_while_waiting(call, before); });
        EXPECT_EQ(error.code(), ErrorCode::stuck);
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr(std::string("the host: ") + name + " waits until kernels"),
                          HasSubstr("rank 0, block 0: thread 0 waits for the post of rank 1")));
      }
}

// ---- torn stores

using Pair = Pack<std::uint64_t, 2>;

/// How often a reader sees halves of different stores.
int torn_pairs() {
  constexpr std::uint64_t stores = 200;
  alignas(16) std::byte memory[sizeof(Pair)] = {};
  int torn = 0;
  SimtQueue writer, reader;
  writer.launch(
      [&](SimtGroup& group) {
        std::uint64_t steps = 0;
        for (std::uint64_t i = 1; i <= stores; ++i) {
          store_pack(group, memory, Pair{{i, i}});
          group.raise(Site::post, steps, i);
        }
      },
      {.blocks = 1, .threads = 1});
  reader.launch(
      [&](SimtGroup& group) {
        for (;;) {
          const Pair pair = load_pack<Pair>(group, memory);
          if (pair.lane[0] != pair.lane[1]) ++torn;
          if (pair.lane[0] == stores && pair.lane[1] == stores) return;
          group.pause(Site::post, 0, 0);
        }
      },
      {.blocks = 1, .threads = 1});
  simt::run_all();
  return torn;
}

TEST_F(Simt, TornStoresAreSeen) {
  if (simt::under_tsan) GTEST_SKIP() << "a race, which it reports";
  EXPECT_EQ(torn_pairs(), 0);
  simt::configure({.malice = {.torn_stores = true}});
  EXPECT_GT(torn_pairs(), 0);
}

// ---- stale loads

using One = Pack<std::uint64_t, 1>;

struct alignas(64) Line {
  std::byte memory[sizeof(One)];
};

TEST_F(Simt, ALoadBeforeTheAcquireIsStale) {
  if (simt::under_tsan) GTEST_SKIP() << "a race, which it reports";
  const auto seen = [](bool stale_loads, bool early) {
    simt::configure({.malice = {.stale_loads = stale_loads}});
    Line line{};
    std::uint64_t flag = 0, seen = 0;
    SimtQueue writer, reader;
    writer.launch(
        [&](SimtGroup& group) {
          store_pack(group, line.memory, One{{7}});
          group.raise(Site::post, flag, 1);
        },
        {.blocks = 1, .threads = 1});
    reader.launch(
        [&](SimtGroup& group) {
          for (std::uint32_t turn = 0; load_relaxed(flag) == 0; ++turn)
            group.pause(Site::post, 0, turn);
          if (!early) group.acquire(Site::post, flag);
          seen = load_pack<One>(group, line.memory).lane[0];
          if (early) group.acquire(Site::post, flag);
        },
        {.blocks = 1, .threads = 1});
    simt::run_all();
    return seen;
  };
  EXPECT_EQ(seen(false, true), 7u) << "a CPU does not show it";
  EXPECT_EQ(seen(true, true), 0u);
  EXPECT_EQ(seen(true, false), 7u);
}

// What a block knows it passes on with its flags, and what the host wrote is known with the host's.
TEST_F(Simt, KnowledgeTravelsFromFlagToFlag) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    simt::configure({.seed = seed, .malice = {.stale_loads = true}});
    constexpr int ranks = 5, rounds = 3;
    std::array<Line, ranks + 1> lines{};
    std::array<std::uint64_t, ranks + 1> flags{};
    std::array<SimtQueue, ranks> queues;
    int wrong = 0;
    for (int me = 0; me < ranks; ++me)
      queues[me].launch(
          [&, me](SimtGroup& group) {
            const int last = me == 0 ? ranks : me - 1;
            for (std::uint64_t round = 1; round <= rounds; ++round) {
              await(group, Site::post, last, flags[last], me == 0 ? round - 1 : round);
              for (int rank = 0; rank < me; ++rank)
                if (load_pack<One>(group, lines[rank].memory).lane[0] != round) ++wrong;
              for (int rank = me; rank < ranks; ++rank)
                if (load_pack<One>(group, lines[rank].memory).lane[0] != round - 1) ++wrong;
              store_pack(group, lines[me].memory, One{{round}});
              group.raise(Site::post, flags[me], round);
            }
          },
          {.blocks = 1, .threads = 1, .rank = me});
    std::thread proxy([&] {  // carries the flag from the last to the first
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        while (load_acquire(flags[ranks - 1]) < round) std::this_thread::yield();
        store_release(flags[ranks], round);
      }
    });
    for (SimtQueue& queue : queues) queue.synchronize();
    proxy.join();
    EXPECT_EQ(wrong, 0) << "seed " << seed;
  }
}

// ---- late blocks

TEST_F(Simt, LateBlocksFindAWaitThatGivesUp) {
  const auto gave_up = [](bool late_blocks) {
    int times = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      simt::configure({.seed = seed, .malice = {.late_blocks = late_blocks}});
      std::uint64_t flag = 0;
      SimtQueue first, second;
      first.launch([&](SimtGroup& group) { group.raise(Site::post, flag, 1); },
                   {.blocks = 1, .threads = 1});
      second.launch(
          [&](SimtGroup& group) {
            constexpr std::uint32_t enough = 100;
            std::uint32_t turn = 0;
            while (load_relaxed(flag) == 0 && turn < enough) group.pause(Site::post, 0, turn++);
            if (turn == enough) ++times;
          },
          {.blocks = 1, .threads = 1});
      simt::run_all();
    }
    return times;
  };
  EXPECT_EQ(gave_up(false), 0);
  EXPECT_GT(gave_up(true), 0);
}

}  // namespace
}  // namespace treering
