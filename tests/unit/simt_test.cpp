// The `simt` execution: barriers, scheduling by seed, reports about stuck kernels, queues, mutants.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "kernels/exec/simt/device.hpp"
#include "kernels/exec/simt/mutants.hpp"
#include "kernels/exec/simt/queue.hpp"
#include "tests/unit/simt_fixture.hpp"
#include "treering/error.hpp"

extern char** environ;

namespace treering {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// "barrier at simt_test.cpp:63"
std::string barrier_at(int line) { return "barrier at simt_test.cpp:" + std::to_string(line); }

// ---- within a block

class SimtBlock : public Simt, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, SimtBlock, ::testing::Values(1, 3, 32, 64, 256, 1024));

TEST_P(SimtBlock, BarrierSeparatesPhases) {
  const int threads = GetParam();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    simt::configure({.seed = seed});
    std::vector<int> values(threads, -1);
    int wrong = 0;
    SimtQueue queue;
    queue.launch(
        [&](SimtGroup& group) {
          EXPECT_EQ(group.size(), threads);
          for (int phase = 0; phase < 10; ++phase) {
            values[group.rank()] = 1000 * phase + group.rank();
            group.sync();
            const int other = (group.rank() + 1 + phase) % threads;
            if (values[other] != 1000 * phase + other) ++wrong;
            group.sync();
          }
        },
        {.blocks = 1, .threads = threads});
    queue.synchronize();
    EXPECT_EQ(wrong, 0) << "seed " << seed;
    EXPECT_EQ(values[threads - 1], 9000 + threads - 1);
  }
}

TEST_P(SimtBlock, AnyIsTheSameForAll) {
  const int threads = GetParam();
  std::vector<int> yes(threads, 0);
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        for (int voter = 0; voter < 5; ++voter) {
          yes[group.rank()] += group.any(false);
          yes[group.rank()] += 10 * group.any(group.rank() == voter);
        }
      },
      {.blocks = 1, .threads = threads});
  queue.synchronize();
  EXPECT_EQ(yes, std::vector<int>(threads, 10 * std::min(threads, 5)));
}

TEST_F(Simt, SharedMemoryBelongsToTheBlock) {
  std::vector<int> sums(4, 0);
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        auto& part = group.shared<std::array<int, 8>>();
        part[group.rank()] = 100 * group.block() + group.rank();
        group.sync();
        if (group.is_leader())
          for (const int x : part) sums[group.block()] += x;
      },
      {.blocks = 4, .threads = 8});
  queue.synchronize();
  EXPECT_THAT(sums, ElementsAre(28, 828, 1628, 2428));
}

// Warps 0 and 1 meet ten times; warp 2 never comes.
TEST_F(Simt, NamedBarrierJoinsSomeThreads) {
  std::vector<int> values(64, -1);
  int wrong = 0;
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.rank() < 32) {
          for (int i = 0; i < 10; ++i) {
            values[group.rank()] = i;
            group.sync(1, 64);
            group.sync(2, 64);
          }
        } else if (group.rank() < 64) {
          for (int i = 0; i < 10; ++i) {
            group.sync(1, 64);  // from another line: named barriers may
            if (values[group.rank() - 32] != i) ++wrong;
            group.sync(2, 64);
          }
        }
      },
      {.blocks = 1, .threads = 96});
  queue.synchronize();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(values[31], 9);
}

// 40 threads: a whole warp, and one of 8.
TEST_F(Simt, ShuffleExchangesWithinTheWarp) {
  std::vector<float> got(40, -1);
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        float value = 0.5f + group.rank();
        for (int i = 0; i < 3; ++i) value = group.shuffle(value, group.rank() % 32 + 1);
        got[group.rank()] = value;
      },
      {.blocks = 1, .threads = 40});
  queue.synchronize();
  for (int rank = 0; rank < 40; ++rank) {
    const int expected = rank < 32 ? (rank + 3) % 32 : 32 + (rank - 32 + 3) % 8;
    EXPECT_EQ(got[rank], 0.5f + expected) << "thread " << rank;
  }
}

TEST_F(Simt, ThreadsMayExitEarly) {
  std::vector<int> values(32, 0);
  int sum = 0;
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.rank() >= 5) return;
        values[group.rank()] = 1 + group.rank();
        group.sync(3, 5);
        if (group.is_leader())
          for (const int x : values) sum += x;
      },
      {.blocks = 1, .threads = 32});
  queue.synchronize();
  EXPECT_EQ(sum, 1 + 2 + 3 + 4 + 5);
}

// ---- scheduling

/// In which order 3 × 8 threads come by, five times.
std::vector<int> order_of(std::uint64_t seed) {
  simt::configure({.seed = seed});
  std::vector<int> order(120, -1);
  std::atomic<int> next{0};  // relaxed: orders nothing that ThreadSanitizer would see
  std::uint64_t flag = 0;
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        for (int i = 0; i < 5; ++i) {
          order[next.fetch_add(1, std::memory_order_relaxed)] = 100 * group.block() + group.rank();
          group.raise(Site::credit, flag, 1);
        }
      },
      {.blocks = 3, .threads = 8});
  queue.synchronize();
  EXPECT_EQ(next, 120);
  return order;
}

TEST_F(Simt, SeedReplays) {
  const auto order = order_of(7);
  const auto trace = simt::trace();
  EXPECT_EQ(order_of(7), order);
  EXPECT_EQ(simt::trace(), trace);
  EXPECT_NE(order_of(8), order);
  EXPECT_NE(simt::trace(), trace);
}

/// Two kernels that throw a ball to each other.
void play(SimtQueue& first, SimtQueue& second, std::array<std::uint64_t, 2>& flags, int throws) {
  const auto player = [&flags, throws](std::uint64_t me) {
    return [&flags, throws, me](SimtGroup& group) {
      for (std::uint64_t i = 1; i <= static_cast<std::uint64_t>(throws); ++i) {
        await(group, Site::post, static_cast<int>(1 - me), flags[1 - me],
              i - me == 0 ? 0 : i - 1 + me);
        group.sync();
        if (group.is_leader()) group.raise(Site::post, flags[me], i);
        group.sync();
      }
    };
  };
  first.launch(player(0), {.blocks = 1, .threads = 8, .rank = 0});
  second.launch(player(1), {.blocks = 1, .threads = 8, .rank = 1});
}

TEST_F(Simt, KernelsSignalEachOther) {
  std::array<std::uint64_t, 2> flags{};
  SimtQueue first, second;
  play(first, second, flags, 50);
  first.synchronize();
  second.synchronize();
  EXPECT_THAT(flags, ElementsAre(50, 50));
}

// ---- stuck kernels

TEST_F(Simt, ReportsAnExitedThread) {
  int line = 0;
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.rank() == 7) return;
        if (group.is_leader()) line = __LINE__ + 1;
        group.sync();
      },
      {.blocks = 1, .threads = 32, .rank = 3});
  const Error error = error_of([&] { queue.synchronize(); });
  EXPECT_EQ(error.code(), ErrorCode::stuck);
  EXPECT_THAT(error.ranks(), ElementsAre(3));
  EXPECT_THAT(error.what(), HasSubstr("rank 3, block 0: " + barrier_at(line) +
                                      ", 31 of 32 threads arrived; thread 7 has exited"));
}

TEST_F(Simt, ReportsThreadsAtDifferentBarriers) {
  constexpr int line = __LINE__ + 6;  // of the first
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.block() == 0) return;
        if (group.rank() < 3)
          group.sync();
        else
          group.sync();
      },
      {.blocks = 2, .threads = 32});
  const Error error = error_of([&] { simt::run_all(); });
  EXPECT_EQ(error.code(), ErrorCode::stuck);
  EXPECT_THAT(
      error.what(),
      AllOf(HasSubstr("kernel 0, block 1: " + barrier_at(line) + ", 3 of 32 threads"),
            HasSubstr(barrier_at(line + 2) + ", 29 of 32 threads"), Not(HasSubstr("block 0"))));
}

TEST_F(Simt, ReportsAFlagThatIsNeverRaised) {
  std::uint64_t flag = 0;
  int line = 0;
  std::array<SimtQueue, 2> queues;
  for (const int rank : {0, 1})
    queues[rank].launch(
        [&, rank](SimtGroup& group) {
          await(group, rank == 0 ? Site::post : Site::credit, rank + 2, flag, 1);
          if (group.rank() == 1 && rank == 0) line = __LINE__ + 1;
          group.sync();
        },
        {.blocks = 1, .threads = 4, .rank = rank});
  const Error error = error_of([] { simt::run_all(); });
  EXPECT_EQ(error.code(), ErrorCode::stuck);
  EXPECT_THAT(error.ranks(), ElementsAre(0, 1));
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("rank 0, block 0: thread 0 waits for the post of rank 2; " +
                              barrier_at(line) + ", 3 of 4 threads arrived"),
                    HasSubstr("rank 1, block 0: thread 0 waits for the credit of rank 3")));
  EXPECT_NO_THROW(queues[0].synchronize()) << "told by run_all() already";
}

TEST_F(Simt, ReportsNamedBarriersAndShuffles) {
  SimtQueue queue;
  queue.launch(
      [](SimtGroup& group) {
        if (group.rank() == 1) group.sync(5, 3);
        if (group.rank() == 0) group.shuffle(1, 0);
      },
      {.blocks = 1, .threads = 2});
  EXPECT_THAT(
      error_of([&] { queue.synchronize(); }).what(),
      AllOf(HasSubstr("barrier 5 at"), HasSubstr("1 of 3 threads"), HasSubstr("shuffle at")));
}

TEST_F(Simt, PatienceEndsAWaitThatNobodyEnds) {
  simt::configure({.patience = std::chrono::milliseconds(20)});
  std::uint64_t flag = 0;
  SimtQueue queue;
  SimtEvent event;
  queue.launch([&](SimtGroup& group) { await(group, Site::post, 1, flag, 1); }, {.threads = 4});
  queue.record(event);
  EXPECT_EQ(error_of([&] { event.synchronize(); }).code(), ErrorCode::stuck);
  EXPECT_EQ(error_of([&] { queue.synchronize(); }).code(), ErrorCode::stuck);
  EXPECT_NO_THROW(queue.synchronize());
  EXPECT_TRUE(event.done());
}

TEST_F(Simt, AnotherThreadMayRaiseTheFlag) {
  std::uint64_t begun = 0, flag = 0;
  int data = 0;
  SimtQueue queue;
  queue.launch(
      [&](SimtGroup& group) {
        if (group.is_leader()) group.raise(Site::credit, begun, 1);
        await(group, Site::post, 1, flag, 1);
        group.sync();
        EXPECT_EQ(data, 42);
      },
      {.threads = 4});
  std::thread proxy([&] {
    while (load_acquire(begun) == 0) std::this_thread::yield();
    data = 42;
    store_release(flag, 1);
  });
  EXPECT_NO_THROW(queue.synchronize());
  proxy.join();
}

TEST_F(Simt, StuckKernelsAreUnwoundAndTheEngineGoesOn) {
  for (int round = 0; round < 3; ++round) {
    std::array<int, 8> alive{};
    int after = 0;
    struct Counted {
      explicit Counted(int& number) : count(number) { ++count; }
      ~Counted() { --count; }
      int& count;
    };
    SimtQueue queue;
    queue.launch(
        [&](SimtGroup& group) {
          std::vector<int> memory(100, group.rank());
          group.sync(1, 8);
          if (group.rank() == 0) return;
          const Counted counted(alive[group.rank()]);
          group.sync(2, 8);
          ADD_FAILURE() << "thread " << group.rank() << " passed";
        },
        {.blocks = 1, .threads = 8});
    queue.launch([&](SimtGroup& group) { after += group.rank(); }, {.blocks = 1, .threads = 1});
    queue.launch([&](SimtGroup&) { ++after; }, {.blocks = 1, .threads = 1});
    EXPECT_EQ(error_of([&] { queue.synchronize(); }).code(), ErrorCode::stuck);
    EXPECT_THAT(alive, ::testing::Each(0));
    EXPECT_EQ(after, 1);
  }
}

// ---- queues

TEST_F(Simt, QueueKeepsOrder) {
  std::vector<int> a(100, 1), b(100, 2), c(100, 3);
  SimtQueue queue;
  queue.launch([&](SimtGroup& group) { a[group.rank()] = 10 + group.rank(); }, {.threads = 100});
  queue.copy(b.data(), a.data(), 100 * sizeof(int));
  queue.launch([&](SimtGroup& group) { a[group.rank()] = 0; }, {.threads = 100});
  queue.copy(c.data(), b.data(), 100 * sizeof(int));
  queue.synchronize();
  EXPECT_EQ(a, std::vector<int>(100, 0));
  EXPECT_EQ(c[0], 10);
  EXPECT_EQ(c[99], 109);
}

TEST_F(Simt, EventOrdersQueues) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    simt::configure({.seed = seed});
    int value = 0, seen = 0, seen_later = 0;
    SimtQueue first, second;
    SimtEvent event;
    EXPECT_TRUE(event.done()) << "never recorded";
    first.launch(
        [&](SimtGroup& group) {
          for (int i = 0; i < 10; ++i) group.sync();
          if (group.is_leader()) value = 1;
        },
        {.threads = 8});
    first.record(event);
    second.wait(event);
    second.launch([&](SimtGroup&) { seen = value; }, {.threads = 1});
    second.record(event);
    second.synchronize();
    EXPECT_EQ(seen, 1) << "seed " << seed;
    event.synchronize();
    EXPECT_TRUE(event.done());
    second.launch([&](SimtGroup&) { seen_later = 2; }, {.threads = 1});
    second.record(event);
    event.synchronize();
    EXPECT_EQ(seen_later, 2);
  }
}

TEST_F(Simt, AskingLeadsSomewhere) {
  std::uint64_t flag = 0;
  SimtQueue queue;
  SimtEvent event;
  queue.launch(
      [&](SimtGroup& group) {
        for (int i = 0; i < 1000; ++i) group.sync();
        if (group.is_leader()) group.raise(Site::post, flag, 1);
      },
      {.threads = 32});
  queue.record(event);
  while (!event.done()) {
  }
  EXPECT_EQ(load_acquire(flag), 1u);
  EXPECT_TRUE(queue.idle());
}

TEST_F(Simt, ManyHostThreadsWaitAtOnce) {
  constexpr int pairs = 3, rounds = 20;
  std::array<std::array<std::uint64_t, 2>, pairs> flags{};
  std::array<SimtQueue, 2 * pairs> queues;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2 * pairs; ++i)
    threads.emplace_back([&, i] {
      const std::uint64_t me = i % 2;
      auto& ball = flags[i / 2];
      for (std::uint64_t round = 1; round <= rounds; ++round) {
        queues[i].launch(
            [&ball, me, round](SimtGroup& group) {
              if (group.is_leader()) group.raise(Site::post, ball[me], round);
              await(group, Site::post, static_cast<int>(1 - me), ball[1 - me], round);
              group.sync();
            },
            {.blocks = 1, .threads = 8, .rank = i});
        queues[i].synchronize();
        EXPECT_GE(load_acquire(ball[1 - me]), round);
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& ball : flags) EXPECT_THAT(ball, ElementsAre(rounds, rounds));
}

TEST_F(Simt, RefusesImpossibleShapes) {
  SimtQueue queue;
  const simt::Kernel nothing = [](SimtGroup&) {};
  for (const simt::Shape shape : {simt::Shape{0, 1}, {1, 0}, {1, 1025}, {1000000, 1024}, {-1, 32}})
    EXPECT_EQ(error_of([&] { queue.launch(nothing, shape); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([] { simt::configure({.threads = 0}); }).code(), ErrorCode::invalid_argument);
}

// More threads than can live at once: the later kernels wait.
TEST_F(Simt, KernelsWaitForRoom) {
  if (simt::under_tsan) GTEST_SKIP() << "takes half a minute";
  constexpr int kernels = 40;
  std::vector<SimtQueue> queues(kernels);
  std::array<int, kernels> done{};
  for (int i = 0; i < kernels; ++i)
    queues[i].launch(
        [&done, i](SimtGroup& group) {
          group.sync();
          if (group.is_leader()) done[i] = 1;
        },
        {.blocks = 1, .threads = 1024});
  simt::run_all();
  for (const int one : done) EXPECT_EQ(one, 1);
}

TEST_F(Simt, DeviceHasPlainMemory) {
  const auto device = make_simt_device();
  EXPECT_EQ(device->execution(), Execution::simt);
  EXPECT_THAT(device->describe(), HasSubstr("32 threads"));
  auto* memory = static_cast<unsigned char*>(device->allocate(1000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(memory[i], 0);
  MemoryHandle handle;
  std::size_t offset;
  EXPECT_FALSE(device->export_memory(memory, handle, offset));
  EXPECT_EQ(error_of([&] { device->import_memory(handle); }).code(), ErrorCode::unsupported);
  device->deallocate(memory);
  EXPECT_EQ(device->blocks(8, 8), 8);
  simt::configure({.threads = 1024});
  EXPECT_EQ(device->blocks(8, 1000), 1);
}

// One rank alone passes a barrier at once.
TEST_F(Simt, DeviceRunsKernelsOfTheCatalog) {
  simt::configure({.threads = 3});
  Board board{};
  std::array<std::uint64_t, 2> sequence{4, 4};
  std::uint64_t broken = 0;
  std::array<Verdict, 2> verdicts{};
  RankView view{};
  view.size = 1;
  view.channels = 2;
  view.board = &board;
  view.sequence = sequence.data();
  view.broken = &broken;
  view.verdicts = verdicts.data();
  Launch launch{.view = &view, .args = {}, .blocks = 2};
  launch.args.call.collective = Collective::barrier;
  launch.args.call.algorithm = Algorithm::dissemination;
  const auto device = make_simt_device();
  device->run(launch);
  EXPECT_THAT(sequence, ElementsAre(5, 5));
  const auto queue = device->create_queue();
  device->launch_together(std::array{queue.get()}, std::array{launch});
  queue->synchronize();
  EXPECT_THAT(sequence, ElementsAre(6, 6));
}

// ---- mutants

/// A wire of two slots between two blocks. Returns how many elements were wrong.
int send_through_slots() {
  constexpr int slots = 2, messages = 10, size = 16;
  std::array<std::array<int, size>, slots> slot{};
  const auto at = [&slot](int message, int element) {
    return reinterpret_cast<std::byte*>(&slot[message % slots][element]);
  };
  std::array<int, size> wrong{};
  std::uint64_t post = 0, credit = 0;
  SimtQueue sender, receiver;
  sender.launch(
      [&](SimtGroup& group) {
        for (int message = 1; message <= messages; ++message) {
          if (message > slots) await(group, Site::credit, 1, credit, message - slots);
          group.sync();
          const Pack<int, 1> value{100 * message + group.rank()};
          store_pack(group, at(message, group.rank()), value);
          group.sync();
          if (group.is_leader()) group.raise(Site::post, post, message);
        }
      },
      {.blocks = 1, .threads = size, .rank = 0});
  receiver.launch(
      [&](SimtGroup& group) {
        const int other = size - 1 - group.rank();
        for (int message = 1; message <= messages; ++message) {
          await(group, Site::post, 0, post, message);
          group.sync();
          const auto value = load_pack<Pack<int, 1>>(group, at(message, other));
          if (value.lane[0] != 100 * message + other) ++wrong[other];
          group.sync();
          if (group.is_leader()) group.raise(Site::credit, credit, message);
        }
      },
      {.blocks = 1, .threads = size, .rank = 1});
  simt::run_all();
  int sum = 0;
  for (const int w : wrong) sum += w;
  return sum;
}

std::vector<simt::mutants::BarrierSite> sites_of_slots() {
  simt::mutants::watch_barriers();
  send_through_slots();
  const auto sites = simt::mutants::barrier_sites();
  simt::mutants::heal();
  return sites;
}

TEST_F(Simt, EveryMissingBarrierIsFoundBySomeSeed) {
  const auto sites = sites_of_slots();
  EXPECT_EQ(sites.size(), 4u);
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    simt::configure({.seed = seed});
    EXPECT_EQ(send_through_slots(), 0) << "seed " << seed;
  }
  if (simt::under_tsan) return;  // races, reported: see below
  for (const auto& site : sites) {
    simt::mutants::skip_barrier(site);
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      simt::configure({.seed = seed});
      if (send_through_slots() != 0) ++found;
    }
    simt::mutants::heal();
    RecordProperty("line " + std::to_string(site.line), found);
    EXPECT_GT(found, 0) << "without the barrier at line " << site.line;
  }
}

// Without ThreadSanitizer, by wrong values.
TEST_F(Simt, StaleLoadsShowAMissingReleaseOrAcquire) {
  if (simt::under_tsan) GTEST_SKIP() << "races, which it reports";
  const auto wrong_with = [](bool stale_loads, auto break_it) {
    simt::configure({.malice = {.stale_loads = stale_loads}});
    break_it();
    const int wrong = send_through_slots();
    simt::mutants::heal();
    return wrong;
  };
  EXPECT_EQ(wrong_with(true, [] {}), 0);
  for (const bool stale : {false, true}) {
    EXPECT_EQ(wrong_with(stale, [] { simt::mutants::weaken(Site::post); }) != 0, stale);
    EXPECT_EQ(wrong_with(stale, [] { simt::mutants::no_acquire(Site::post); }) != 0, stale);
  }
}

// Each barrier that a thread comes to, one at a time; some are needless, as the first message finds
// a free slot.
TEST_F(Simt, BarriersAreSkippedByNumber) {
  if (simt::under_tsan) GTEST_SKIP() << "races";
  sites_of_slots();
  EXPECT_EQ(simt::mutants::barrier_count(), 20);
  int found = 0;
  for (int number = 0; number < 20; ++number) {
    simt::mutants::skip_barrier(number);
    if (send_through_slots() != 0) ++found;
    simt::mutants::heal();
  }
  EXPECT_GT(found, 5);
}

// A report of ThreadSanitizer ends the process, so mutants run in a child: this test, alone, told
// by a variable.
TEST_F(Simt, DISABLED_Mutant) {
  const std::string mutant = std::getenv("SIMT_TEST_MUTANT");
  if (mutant == "weak post") simt::mutants::weaken(Site::post);
  if (mutant == "weak credit") simt::mutants::weaken(Site::credit);
  if (mutant == "no acquire post") simt::mutants::no_acquire(Site::post);
  if (mutant == "no acquire credit") simt::mutants::no_acquire(Site::credit);
  if (mutant.starts_with("skip "))
    simt::mutants::skip_barrier(sites_of_slots().at(mutant.back() - '0'));
  EXPECT_EQ(send_through_slots(), 0);
}

/// Exit status of the child; ThreadSanitizer's is 66.
int run_child(const std::string& mutant) {
  setenv("SIMT_TEST_MUTANT", mutant.c_str(), 1);
  const char* before = std::getenv("TSAN_OPTIONS");
  const std::string options = before == nullptr ? "" : before;
  setenv("TSAN_OPTIONS", "exitcode=66 halt_on_error=1", 1);
  std::string program = "/proc/self/exe", filter = "--gtest_filter=Simt.DISABLED_Mutant",
              disabled = "--gtest_also_run_disabled_tests", brief = "--gtest_brief=1";
  char* arguments[] = {program.data(), filter.data(), disabled.data(), brief.data(), nullptr};
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = -1;
  if (posix_spawn(&child, "/proc/self/exe", &quiet, nullptr, arguments, environ) == 0)
    waitpid(child, &status, 0);
  posix_spawn_file_actions_destroy(&quiet);
  setenv("TSAN_OPTIONS", options.c_str(), 1);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Simt, ThreadSanitizerReportsMutants) {
  if (!simt::under_tsan) GTEST_SKIP() << "needs a build with ThreadSanitizer";
  EXPECT_EQ(run_child("none"), 0);
  for (const char* mutant : {"weak post", "weak credit", "no acquire post", "no acquire credit",
                             "skip 0", "skip 1", "skip 2", "skip 3"})
    EXPECT_EQ(run_child(mutant), 66) << mutant;
}

}  // namespace
}  // namespace treering
