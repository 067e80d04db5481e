// Messages on the host, where calls of one rank run side by side, in threads and in streams, and
// ranks may be processes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <latch>
#include <numeric>
#include <sstream>

#include "collectives/access.hpp"
#include "tests/ranks/letters.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

constexpr auto u8 = DataType::u8;
constexpr auto i32 = DataType::i32;
constexpr std::size_t large = 5'000'000;

class Messages : public testing::Test {
 protected:
  static constexpr int size = 3;
  std::vector<Communicator> comms_ = Communicator::create_local(size);
  std::vector<std::vector<std::byte>> data_{size, std::vector<std::byte>(large)};

  Communicator& comm(int rank) { return comms_[static_cast<std::size_t>(rank)]; }
  std::byte* data(int rank) { return data_[static_cast<std::size_t>(rank)].data(); }
};

void expect_ok(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes) EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

void expect_lost(const Outcome& o, int peer) {
  EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
  EXPECT_THAT(o.ranks, ElementsAre(peer)) << testing::PrintToString(o);
  EXPECT_LT(o.took, 10s);
}

// ---- side by side

TEST_F(Messages, AReceiveOnAStreamHoldsUpNothing) {
  Stream waiting;
  int late = 0;
  Message heard{};
  comm(0).exchange({Transfer::receive(&late, 1, i32, 1, 99, &heard)}, {.stream = &waiting});
  expect_ok(on_threads(size, [&](int rank) {
    int mine = rank, theirs = -1;
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < 20; ++i) {
      comm(rank).exchange(
          {Transfer::send(&mine, 1, i32, next), Transfer::receive(&theirs, 1, i32, previous)});
      EXPECT_EQ(theirs, previous);
      comm(rank).barrier();
    }
    Stream other;
    comm(rank).send(&mine, 1, i32, next, 5, {.stream = &other});
    comm(rank).receive(&theirs, 1, i32, previous, 5, {.stream = &other});
    other.synchronize();
  }));
  EXPECT_FALSE(waiting.idle());
  const int sent = 17;
  comm(1).send(&sent, 1, i32, 0, 99);
  waiting.synchronize();
  EXPECT_EQ(late, 17);
  EXPECT_EQ(heard.source, 1);
  EXPECT_EQ(heard.tag, 99);
}

TEST_F(Messages, SeveralThreadsOfARank) {
  constexpr int threads = 3;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::vector<std::vector<Letter>> letters;
    for (int t = 0; t < threads; ++t) {
      letters.push_back(
          random_letters(size, 60, 20'000, seed * 10 + static_cast<std::uint64_t>(t)));
      for (Letter& letter : letters.back()) letter.tag += 1000 * t;
    }
    expect_ok(on_threads(size * threads, [&](int i) {
      const int rank = i % size;
      const auto s = seed * 10 + static_cast<std::uint64_t>(i / size);
      Correspondence mine(letters[static_cast<std::size_t>(i / size)], rank, s);
      for (const auto& group : mine.schedule(s)) comm(rank).exchange(group);
      EXPECT_EQ(mine.faults(), "");
    }));
  }
}

/// Far more waits than cores, all of which make passes over the same operations.
TEST_F(Messages, OnAHundredStreams) {
  constexpr int streams = 100;
  constexpr std::size_t count = 2000;
  expect_ok(on_threads(2, [&](int rank) {
    std::vector<Stream> all(streams);
    std::vector<std::vector<std::int32_t>> data(streams, std::vector<std::int32_t>(count));
    for (int i = 0; i < streams; ++i) {
      auto& mine = data[static_cast<std::size_t>(i)];
      Stream& stream = all[static_cast<std::size_t>(i)];
      if (rank == 0) comm(0).receive(mine.data(), count, i32, 1, i, {.stream = &stream});
      if (rank == 1) std::iota(mine.begin(), mine.end(), i);
      if (rank == 1) comm(1).send(mine.data(), count, i32, 0, i, {.stream = &stream});
    }
    for (Stream& stream : all) stream.synchronize();
    for (int i = 0; i < streams; ++i)
      for (std::size_t e = 0; e < count; ++e)
        EXPECT_EQ(data[static_cast<std::size_t>(i)][e], i + static_cast<int>(e));
  }));
}

TEST_F(Messages, ADroppedLaunchGroupSendsNothing) {
  const int wrong = 1, right = 2;
  int got = 0;
  Stream stream;
  {
    LaunchGroup group;
    comm(0).send(&wrong, 1, i32, 1, 0, {.stream = &stream});
  }
  stream.synchronize();
  comm(0).send(&right, 1, i32, 1);
  comm(1).receive(&got, 1, i32, 0);
  EXPECT_EQ(got, right);
}

TEST_F(Messages, ACommunicatorIsDestroyedBeforeItsStream) {
  Stream stream;
  auto receives = std::async(std::launch::async, [&] { comm(1).receive(data(1), large, u8, 0); });
  comm(0).send(data(0), large, u8, 1, 0, {.stream = &stream});
  { const Communicator gone = std::move(comm(0)); }
  receives.get();
  stream.synchronize();
}

// ---- ranks that leave, fail, abort

TEST_F(Messages, WhatWasSentBeforeLeavingIsReceived) {
  const int sent = 5;
  int got = 0;
  comm(1).send(&sent, 1, i32, 0);
  { const Communicator gone = std::move(comm(1)); }
  comm(0).receive(&got, 1, i32, 1);
  EXPECT_EQ(got, 5);
  expect_lost(outcome_of([&] { comm(0).receive(&got, 1, i32, 1); }), 1);
}

TEST_F(Messages, AnySourceWaitsUntilAllHaveLeft) {
  int got = 0;
  std::latch waiting(1);
  auto receives = std::async(std::launch::async, [&] {
    waiting.count_down();
    return outcome_of([&] { comm(0).receive(&got, 1, i32, any_source); });
  });
  waiting.wait();
  { const Communicator gone = std::move(comm(1)); }
  const int sent = 5;
  comm(2).send(&sent, 1, i32, 0);
  EXPECT_TRUE(receives.get().ok());
  EXPECT_EQ(got, 5);
  { const Communicator gone = std::move(comm(2)); }
  EXPECT_EQ(outcome_of([&] { comm(0).receive(&got, 1, i32, any_source); }).code,
            ErrorCode::peer_lost);
}

TEST_F(Messages, ToARankThatLeft) {
  { const Communicator gone = std::move(comm(1)); }
  expect_lost(outcome_of([&] { comm(0).send(data(0), large, u8, 1); }), 1);
  // Short ones fit the window; then somebody would have to receive them.
  expect_lost(outcome_of([&] {
                for (int i = 0; i < 65; ++i) comm(2).send(data(2), 1, u8, 1);
              }),
              1);
}

/// What a rank may be waiting in: a receive, a long send, a send behind a full window.
TEST_F(Messages, AbortEndsEveryWait) {
  const std::vector<Transfer> waits[] = {
      {Transfer::receive(data(0), 1, u8, 1)},
      {Transfer::receive(data(0), 1, u8, any_source, any_tag)},
      {Transfer::send(data(0), large, u8, 1)},
      std::vector(70, Transfer::send(data(0), 1, u8, 1)),
  };
  for (const auto& wait : waits) {
    comms_ = Communicator::create_local(size);
    Stream stream;
    comm(2).receive(data(2), 1, u8, 1, 0, {.stream = &stream});
    std::latch waiting(1);
    auto waits_in_vain = std::async(std::launch::async, [&] {
      waiting.count_down();
      return outcome_of([&] { comm(0).exchange(wait); });
    });
    waiting.wait();
    comm(1).abort();
    for (const Outcome& o : {waits_in_vain.get(), outcome_of([&] { stream.synchronize(); })}) {
      EXPECT_EQ(o.code, ErrorCode::aborted) << testing::PrintToString(o);
      EXPECT_THAT(o.ranks, ElementsAre(1));
      EXPECT_LT(o.took, 10s);
    }
  }
}

/// A message that fits nothing breaks collectives that wait, too.
TEST_F(Messages, AMismatchEndsCollectives) {
  const std::vector<Outcome> outcomes = on_threads(size, [&](int rank) {
    if (rank == 0) comm(0).send(data(0), 10, u8, 1, 7);
    if (rank == 1) comm(1).receive(data(1), 11, u8, 0, 7);
    comm(rank).barrier();
  });
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.ranks, ElementsAre(0, 1));
  }
}

// ---- processes

/// Argument: a seed and how many letters.
const RegisterProgram letters("letters", [](const RankProcess& self) {
  std::istringstream argument(self.argument);
  std::uint64_t seed = 0;
  std::size_t count = 0;
  argument >> seed >> count;
  Communicator comm = self.join();
  Correspondence mine(random_letters(self.size, count, 200'000, seed), self.rank, seed);
  for (const auto& group : mine.schedule(seed)) comm.exchange(group);
  const std::string faults = mine.faults();
  self.say(faults.empty() ? "right" : faults);
  comm.barrier();
});

TEST(MessagesOfProcesses, RandomSchedules) {
  for (const int size : {1, 2, 3, 5})
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      SCOPED_TRACE(fmt::format("{} ranks, seed {}", size, seed));
      // With a small inbox slots go round often.
      Job job("letters", size,
              {.argument = fmt::format("{} 100", seed),
               .environment = {seed % 2 != 0 ? "TREERING_INBOX=12M" : "TREERING_INBOX=16K"}});
      job.expect_all("right");
      for (int r = 0; r < size; ++r) EXPECT_EQ(job.wait(r), 0);
    }
}

/// Rank 0 sends on a stream, out of memory that its peer cannot reach, and does something else until
/// it hears that the message has arrived.
const RegisterProgram overlap("overlap", [](const RankProcess& self) {
  Communicator comm = self.join();
  std::vector<std::byte> data(large, std::byte{static_cast<unsigned char>(self.rank + 1)});
  if (self.rank == 0) {
    Stream stream;
    comm.send(data.data(), large, u8, 1, 0, {.stream = &stream});
    self.say("started");
    self.hear();
    stream.synchronize();
  } else {
    comm.receive(data.data(), large, u8, 0);
    self.say(data == std::vector(large, std::byte{1}) ? "received" : "wrong");
  }
  comm.barrier();
});

TEST(MessagesOfProcesses, ProgressWhileTheCallerDoesSomethingElse) {
  Job job("overlap", 2);
  EXPECT_EQ(job.hear(0), "started");
  EXPECT_EQ(job.hear(1), "received");
  job.tell(0, "go on");
  for (int r = 0; r < 2; ++r) EXPECT_EQ(job.wait(r), 0);
}

/// Messages go round a ring until one fails.
const RegisterProgram carousel("carousel", [](const RankProcess& self) {
  Communicator comm = self.join();
  const bool registered = self.argument == "registered";
  Guarded out(large, registered), in(large, registered);
  const int next = (self.rank + 1) % self.size, previous = (self.rank + self.size - 1) % self.size;
  self.say("in the call");
  const Outcome end = outcome_of([&] {
    for (std::size_t i = 0;; ++i) {
      const std::size_t count = i % 3 == 0 ? 10 : large / (1 + i % 5);
      comm.exchange({Transfer::send(out.data(), count, u8, next),
                     Transfer::receive(in.data(), count, u8, i % 2 != 0 ? any_source : previous)});
    }
  });
  self.say(end.line());
});

TEST(MessagesOfProcesses, AKilledRankIsAnErrorOnTheOthers) {
  std::mt19937 random(99);
  for (int i = 0; i < 8; ++i) {
    const int size = 2 + i % 3, victim = static_cast<int>(random() % static_cast<unsigned>(size));
    SCOPED_TRACE(fmt::format("round {}, {} ranks, victim {}", i, size, victim));
    Job job("carousel", size, {.argument = i % 2 == 0 ? "registered" : "private"});
    job.expect_all("in the call");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));  // any moment
    job.kill(victim, SIGKILL);
    for (int r = 0; r < size; ++r)
      if (r != victim) expect_lost(job.hear_outcome(r), victim);
  }
}

}  // namespace
}  // namespace treering::test
