// Communicators and streams come and go, many at once, in any order.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <latch>
#include <optional>

#include "collectives/membership.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/host/arena.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/resources.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::HasSubstr;

constexpr auto f32 = DataType::f32;
constexpr auto sum = ReduceOp::sum;

Case all_reduce(int size, std::size_t count, std::uint64_t seed) {
  return {.pattern = {Collective::all_reduce, f32, sum, size, count, seed}};
}

std::vector<UniqueId> unique_ids(int count) {
  std::vector<UniqueId> ids;
  for (int i = 0; i < count; ++i) ids.push_back(UniqueId::create());
  return ids;
}

void expect_all_ok(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes) EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

void expect_flat(const Resources& before, const Resources& after) {
  constexpr std::size_t slack = 16 << 20;
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.threads, before.threads);
  EXPECT_EQ(after.arena, before.arena);
  EXPECT_TRUE(sanitized() || after.resident < before.resident + slack)
      << testing::PrintToString(before) << ", then " << testing::PrintToString(after);
}

constexpr int first_rounds = 20, many_rounds = 1000;

/// Runs the rounds, and compares what is held after some with what is held after all.
template <class Round>
void expect_flat_rounds(Round round) {
  for (int i = 0; i < first_rounds; ++i) round(i);
  const Resources before = Resources::swept();
  for (int i = first_rounds; i < many_rounds; ++i) round(i);
  expect_flat(before, Resources::swept(before));
}

TEST(ThousandCommunicators, MadeByOneThread) {
  expect_flat_rounds([](int i) {
    Team team(2);
    check(team, all_reduce(2, 100, static_cast<std::uint64_t>(i)));
  });
}

TEST(ThousandCommunicators, MadeByThreads) {
  constexpr int size = 2;
  const std::vector<UniqueId> ids = unique_ids(many_rounds);
  const auto rounds = [&](int begin, int end) {
    expect_all_ok(on_threads(size, [&](int rank) {
      for (int i = begin; i < end; ++i) {
        Communicator comm = Communicator::create(ids[static_cast<std::size_t>(i)], size, rank);
        EXPECT_EQ(checked_call(comm, all_reduce(size, 100, static_cast<std::uint64_t>(i))), "");
      }
    }));
  };
  rounds(0, first_rounds);
  const Resources before = Resources::swept();
  rounds(first_rounds, many_rounds);
  expect_flat(before, Resources::swept(before));
}

/// Says what it holds after some rounds, and after all.
const RegisterProgram churn("churn", [](const RankProcess& self) {
  Resources before{};
  for (int i = 0; i < many_rounds; ++i) {
    if (i == first_rounds) {
      self.hear();
      before = Resources::swept();
      self.say(before.line());
    }
    const UniqueId id = UniqueId::parse(self.hear());
    self.say([&] {  // when the communicator is destroyed
      Communicator comm = Communicator::create(id, self.size, self.rank);
      return checked_call(comm, all_reduce(self.size, 100, static_cast<std::uint64_t>(i)));
    }());
  }
  self.hear();
  self.say(Resources::swept(before).line());
});

TEST(ThousandCommunicators, MadeByProcesses) {
  Job job("churn", 2);
  std::vector<Resources> before;
  for (int i = 0; i < many_rounds; ++i) {
    if (i == first_rounds) {
      job.tell_all("sweep");
      for (int r = 0; r < 2; ++r) before.push_back(Resources::parse(job.hear(r)));
    }
    job.tell_all(UniqueId::create().text());
    job.expect_all("");
  }
  job.tell_all("sweep");
  for (int r = 0; r < 2; ++r)
    expect_flat(before[static_cast<std::size_t>(r)], Resources::parse(job.hear(r)));
}

/// A rank whose start failed late writes nothing into the seat of a peer that has gone meanwhile: the memory may be
/// somebody else's by now.
TEST(FailedStart, LeavesThePeersSeatAlone) {
  const auto seat_of = [](int rank) {
    return std::make_shared<Membership>(device(), rank, 2, Options{});
  };
  auto mine = seat_of(0), theirs = seat_of(1);
  const Facts facts[] = {mine->facts(), theirs->facts()};
  mine->map(facts, {});
  mine->connect(facts);
  theirs
      .reset();  // its start failed; freed memory of the arena reads as zeros until somebody writes there
  const auto* farewell = reinterpret_cast<const std::uint64_t*>(
      process_arena().base() + facts[1].board_offset + sizeof(Board));
  ASSERT_EQ(load_relaxed(*farewell), 0U);
  Membership::retire(std::move(mine));
  EXPECT_EQ(load_relaxed(*farewell), 0U);
}

TEST(ManyCommunicators, StartAtOnceFromManyThreads) {
  constexpr int communicators = 8, size = 3;
  const std::vector<UniqueId> ids = unique_ids(communicators);
  expect_all_ok(on_threads(communicators * size, [&](int i) {
    const int which = i / size, rank = i % size;
    Communicator comm = Communicator::create(ids[static_cast<std::size_t>(which)], size, rank);
    EXPECT_EQ(checked_call(comm, all_reduce(size, 1000, static_cast<std::uint64_t>(which))), "");
  }));
}

/// Several communicators of the same ranks; calls interleaved, destroyed in another order by each.
TEST(ManyCommunicators, OfTheSameRanksAliveAtOnce) {
  constexpr std::size_t communicators = 5;
  constexpr int size = 3;
  const std::vector<UniqueId> ids = unique_ids(communicators);
  expect_all_ok(on_threads(size, [&](int rank) {
    std::vector<std::optional<Communicator>> comms;
    for (const UniqueId& id : ids) comms.emplace_back(Communicator::create(id, size, rank));
    for (std::uint64_t i = 0; i < 60; ++i) {
      Communicator& comm = *comms[i * i % communicators];
      EXPECT_EQ(checked_call(comm, all_reduce(size, 1 + i * 50, i)), "");
    }
    for (std::size_t i = 0; i < communicators; ++i)
      comms[(i * 2 + static_cast<std::size_t>(rank)) % communicators].reset();
  }));
}

/// Each thread has a communicator of its own among the same ranks.
TEST(ManyCommunicators, CalledByThreadsAtOnce) {
  constexpr int size = 2, threads = 4;
  const std::vector<UniqueId> ids = unique_ids(threads);
  expect_all_ok(on_threads(size * threads, [&](int i) {
    Communicator comm =
        Communicator::create(ids[static_cast<std::size_t>(i / size)], size, i % size);
    for (std::uint64_t call = 0; call < 30; ++call)
      EXPECT_EQ(checked_call(comm, all_reduce(size, 500 + call, call)), "");
  }));
}

TEST(ManyCommunicators, DestroyedByOneRankWhileOthersGoOnWithTheirs) {
  std::vector<Communicator> first = Communicator::create_local(2);
  Team second(2);
  first.erase(first.begin());
  check(second, all_reduce(2, 1000, 1));
  first.clear();
  check(second, all_reduce(2, 1000, 2));
}

const RegisterProgram crowd("crowd", [](const RankProcess& self) {
  constexpr int size = 300;
  std::vector<Communicator> ranks = Communicator::create_local(size);
  for (const std::size_t count : {3, 1000, 30'001}) {
    std::atomic<int> wrong = 0;
    for (const Outcome& o : on_threads(size, [&](int rank) {
           if (!checked_call(ranks[static_cast<std::size_t>(rank)], all_reduce(size, count, count))
                    .empty())
             ++wrong;
         }))
      if (!o.ok()) return self.say(o.line());
    self.say(fmt::format("{} wrong", wrong.load()));
  }
});

TEST(Crowd, OfThreeHundredThreads) {
  if (sanitized()) GTEST_SKIP() << "too many threads for a sanitizer";
  Job job("crowd", 1, {.environment = {"TREERING_INBOX=1M"}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(job.hear(0), "0 wrong");
  EXPECT_EQ(job.wait(0), 0);
}

/// Floats of one rank, its number everywhere.
std::vector<float> ones(int rank, std::size_t count) {
  return std::vector<float>(count, static_cast<float>(rank + 1));
}

TEST(Blocking, CallsOfSeveralThreadsOfOneRank) {
  constexpr int size = 2, calls = 40;
  std::vector<Communicator> comms = Communicator::create_local(size);
  // Two threads a rank, who take turns: call i is made by thread i mod 2.
  std::vector<std::atomic<int>> next(size);
  expect_all_ok(on_threads(size * 2, [&](int thread) {
    const int rank = thread / 2, half = thread % 2;
    auto& turn = next[static_cast<std::size_t>(rank)];
    for (int call = half; call < calls; call += 2) {
      for (int now = turn; now != call; now = turn) turn.wait(now);
      EXPECT_EQ(checked_call(comms[static_cast<std::size_t>(rank)],
                             all_reduce(size, 100, static_cast<std::uint64_t>(call))),
                "");
      turn = call + 1;
      turn.notify_all();
    }
  }));
}

TEST(Asynchronous, CallsLetTheCallerGoOn) {
  std::vector<Communicator> a = Communicator::create_local(2), b = Communicator::create_local(2);
  std::vector<float> in0 = ones(0, 5000), in1 = ones(1, 5000), out0(5000), out1(5000);
  Stream stream;
  // Rank 1 makes this call much later: nothing but the stream waits for it.
  a[0].all_reduce(in0.data(), out0.data(), 5000, f32, sum, {.stream = &stream});
  EXPECT_FALSE(stream.idle());
  for (std::uint64_t i = 0; i < 5; ++i)
    expect_all_ok(on_threads(2, [&](int rank) {
      EXPECT_EQ(checked_call(b[static_cast<std::size_t>(rank)], all_reduce(2, 100, i)), "");
    }));
  EXPECT_FALSE(stream.idle());
  a[1].all_reduce(in1.data(), out1.data(), 5000, f32, sum);
  stream.synchronize();
  EXPECT_TRUE(stream.idle());
  EXPECT_EQ(out0, std::vector<float>(5000, 3));
  EXPECT_EQ(out1, out0);
}

/// Sums the buffer with the other rank's again and again, each time on the stream that `pick` says.
template <class Pick>
void expect_doubling(Pick pick) {
  constexpr int calls = 12;
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<std::vector<float>> data{ones(0, 3000), ones(0, 3000)};
  expect_all_ok(on_threads(2, [&](int rank) {
    Communicator& comm = comms[static_cast<std::size_t>(rank)];
    std::array<Stream, 2> streams;
    float* mine = data[static_cast<std::size_t>(rank)].data();
    for (int call = 0; call < calls; ++call)
      comm.all_reduce(mine, mine, 3000, f32, sum, {.stream = pick(streams, call)});
    for (Stream& stream : streams) stream.synchronize();
  }));
  for (const auto& each : data) EXPECT_EQ(each, std::vector<float>(3000, 1 << calls));
}

using Streams = std::array<Stream, 2>;

TEST(Asynchronous, CallsOnOneStream) {
  expect_doubling([](Streams& streams, int) { return &streams[0]; });
}

TEST(Asynchronous, CallsOnTwoStreamsInTurn) {
  expect_doubling(
      [](Streams& streams, int call) { return &streams[static_cast<std::size_t>(call % 2)]; });
}

TEST(Asynchronous, ThenBlockingAndBack) {
  expect_doubling([](Streams& streams, int call) {
    return call % 3 == 2 ? nullptr : &streams[static_cast<std::size_t>(call / 3 % 2)];
  });
}

/// They would overtake: a stream's thread has to wake up first.
TEST(Asynchronous, BlockingCallsComeAfterThoseOnStreams) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<std::vector<float>> data{ones(0, 1000), ones(0, 1000)};
  constexpr int rounds = 10;
  expect_all_ok(on_threads(2, [&](int rank) {
    Communicator& comm = comms[static_cast<std::size_t>(rank)];
    float* mine = data[static_cast<std::size_t>(rank)].data();
    Stream stream;
    for (int round = 0; round < rounds; ++round) {
      comm.all_reduce(mine, mine, 1000, f32, sum, {.stream = &stream});
      comm.barrier();
    }
  }));
  for (const auto& each : data) EXPECT_EQ(each, std::vector<float>(1000, 1 << rounds));
}

TEST(Asynchronous, CommunicatorsAreDestroyedBeforeTheirStreams) {
  std::vector<Stream> streams(2);
  std::vector<std::vector<float>> data{ones(0, 100), ones(1, 100)};
  {
    std::vector<Communicator> comms = Communicator::create_local(2);
    for (std::size_t r = 0; r < 2; ++r)
      comms[r].all_reduce(data[r].data(), data[r].data(), 100, f32, sum, {.stream = &streams[r]});
  }
  for (Stream& stream : streams) stream.synchronize();
  for (const auto& each : data) EXPECT_EQ(each, std::vector<float>(100, 3));
}

TEST(Asynchronous, StreamsAreDestroyedBeforeTheirCommunicators) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<std::vector<float>> data{ones(0, 100), ones(1, 100)};
  for (int round = 0; round < 3; ++round) {
    std::vector<Stream> streams(2);
    for (std::size_t r = 0; r < 2; ++r)
      comms[r].all_reduce(data[r].data(), data[r].data(), 100, f32, sum, {.stream = &streams[r]});
  }
  for (const auto& each : data) EXPECT_EQ(each, std::vector<float>(100, 12));
}

TEST(Launching, SeveralRanksOfOneThread) {
  Team team(3);
  for (std::uint64_t i = 0; i < 10; ++i) check(team, all_reduce(3, 777, i));
}

TEST(Launching, GroupsThatAreDroppedMakeNoCall) {
  Team team(2);
  std::vector<float> data(10, 1);
  Stream stream;
  {
    LaunchGroup group;
    team[0].all_reduce(data.data(), data.data(), 10, f32, sum, {.stream = &stream});
  }
  stream.synchronize();
  EXPECT_EQ(data, std::vector<float>(10, 1));
  check(team, all_reduce(2, 1000, 1));
}

/// A group that was dropped has not changed what the next call must wait for.
TEST(Launching, CallsAfterADroppedGroupKeepTheirOrder) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<float> data0(1000, 1), data1(1000, 1);
  Stream first, second;
  comms[0].all_reduce(data0.data(), data0.data(), 1000, f32, sum, {.stream = &first});
  {
    LaunchGroup group;
    comms[0].all_reduce(data0.data(), data0.data(), 1000, f32, sum, {.stream = &second});
  }
  comms[0].all_reduce(data0.data(), data0.data(), 1000, f32, sum, {.stream = &second});
  for (int i = 0; i < 2; ++i) comms[1].all_reduce(data1.data(), data1.data(), 1000, f32, sum);
  second.synchronize();
  first.synchronize();
  EXPECT_EQ(data0, std::vector<float>(1000, 4));
  EXPECT_EQ(data1, data0);
}

TEST(Launching, GroupsHaveOneCallOfEachRank) {
  Team team(2);
  std::vector<float> data(10, 1);
  Stream stream;
  {
    LaunchGroup group;
    team[1].all_reduce(data.data(), data.data(), 10, f32, sum, {.stream = &stream});
    const Outcome o = outcome_of([&] { team[1].barrier({.stream = &stream}); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text, HasSubstr("rank 1 has a call in this LaunchGroup already"));
  }
  check(team, all_reduce(2, 1000, 1));
}

/// The second would begin when the first has ended, which waits for it.
TEST(Launching, RanksInAGroupHaveStreamsOfTheirOwn) {
  Team team(2);
  std::vector<float> data(10, 1);
  Stream stream;
  {
    LaunchGroup group;
    team[0].barrier({.stream = &stream});
    const Outcome o = outcome_of([&] { team[1].barrier({.stream = &stream}); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text, HasSubstr("ranks 0 and 1 of one communicator are on the same stream"));
  }
  check(team, all_reduce(2, 1000, 1));
}

/// Its thread stayed in the parent.
TEST(Asynchronous, AForkedChildMayDestroyAStream) {
  if (device().execution() != Execution::host) GTEST_SKIP() << "streams of the host have threads";
  std::optional<Stream> stream;
  std::vector<Communicator> alone = Communicator::create_local(1);
  alone[0].barrier({.stream = &stream.emplace()});
  stream->synchronize();
  const pid_t child = fork();
  if (child == 0) {
    stream.reset();
    _exit(0);
  }
  int status = 1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Launching, GroupsDoNotNest) {
  LaunchGroup outer;
  const Outcome o = outcome_of([] { LaunchGroup inner; });
  EXPECT_EQ(o.code, ErrorCode::invalid_argument);
  EXPECT_THAT(o.text, HasSubstr("already has a LaunchGroup"));
}

TEST(Launching, GroupsLaunchOnce) {
  LaunchGroup first;
  first.launch();
  LaunchGroup second;
  EXPECT_EQ(outcome_of([&] { first.launch(); }).code, ErrorCode::invalid_argument);
  // The second still collects.
  EXPECT_EQ(outcome_of([] { LaunchGroup third; }).code, ErrorCode::invalid_argument);
  EXPECT_TRUE(outcome_of([&] { second.launch(); }).ok());
}

TEST(Launching, StreamsMayEndBeforeTheirGroupLaunches) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<float> data0(1000, 1), data1(1000, 2);
  Stream stays;
  LaunchGroup group;
  {
    Stream goes;
    comms[0].all_reduce(data0.data(), data0.data(), 1000, f32, sum, {.stream = &goes});
    comms[1].all_reduce(data1.data(), data1.data(), 1000, f32, sum, {.stream = &stays});
  }
  group.launch();
  stays.synchronize();
  comms.clear();  // waits for both
  EXPECT_EQ(data0, std::vector<float>(1000, 3));
  EXPECT_EQ(data1, std::vector<float>(1000, 3));
}

TEST(Launching, BlockingCallsCannotBeCollected) {
  Team team(2);
  {
    LaunchGroup group;
    const Outcome o = outcome_of([&] { team[1].barrier(); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text, HasSubstr("rank 1: a call in a LaunchGroup needs a stream"));
  }
  check(team, all_reduce(2, 1000, 1));
}

TEST(Moved, CommunicatorsGoOn) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  Communicator moved = std::move(comms[0]);
  comms[0] = std::move(moved);
  expect_all_ok(on_threads(2, [&](int rank) {
    EXPECT_EQ(checked_call(comms[static_cast<std::size_t>(rank)], all_reduce(2, 50, 3)), "");
  }));
}

}  // namespace
}  // namespace treering::test
