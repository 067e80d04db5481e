// Rank processes that die, leave, or stand still while others are in a call.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/print.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/resources.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Clock = std::chrono::steady_clock;

constexpr std::size_t large = 2'000'000;

Case all_reduce(int size, std::size_t count, std::uint64_t seed) {
  return {.pattern = {Collective::all_reduce, DataType::f32, ReduceOp::sum, size, count, seed}};
}

/// Loops over large all-reduces until one fails. Argument: "registered" or "private".
const RegisterProgram loop("loop", [](const RankProcess& self) {
  const bool registered = self.argument == "registered";
  std::vector<float> private_input(registered ? 0 : large), private_output(private_input);
  const Buffer input(registered ? large * sizeof(float) : 0), output(input.bytes());
  const float* in = registered ? input.as<float>() : private_input.data();
  float* out = registered ? output.as<float>() : private_output.data();
  const auto call = [&](Communicator& comm) {
    comm.all_reduce(in, out, large, DataType::f32, ReduceOp::sum);
  };

  std::thread([] {}).join();                    // sanitizers start a thread with the first
  call(Communicator::create_local(1).front());  // starts the threads that run blocks, which stay
  const Resources before = Resources::swept();
  {
    Communicator comm = self.join();
    self.say("in the call");
    const Outcome end = outcome_of([&] {
      for (;;) call(comm);
    });
    self.say(fmt::format("{}", Clock::now().time_since_epoch().count()));
    self.say(end.line());
  }
  self.say(before.line());
  self.hear();  // until everybody has destroyed his communicator
  self.say(Resources::swept(before).line());
});

void expect_nothing_left(const UniqueId& job) {
  EXPECT_THAT(leftovers(job), IsEmpty());
  EXPECT_THAT(children(), IsEmpty());
}

/// A moment in a call: ranks are in their loop, so any will do.
void let_pass(std::mt19937& random) {
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
}

class Killed : public testing::TestWithParam<int> {};

TEST_P(Killed, OneRankIsAnErrorOnTheOthers) {
  constexpr int times = 10;
  const int size = GetParam();
  std::mt19937 random(static_cast<unsigned>(4711 + size));
  auto slowest = Clock::duration::zero();
  for (int i = 0; i < times; ++i) {
    const int victim = static_cast<int>(random() % static_cast<unsigned>(size));
    SCOPED_TRACE(fmt::format("round {}, {} ranks, victim {}", i, size, victim));
    const UniqueId id = UniqueId::create();
    Job job("loop", size,
            {.argument = i % 2 == 0 ? "registered" : "private",
             .environment = {fmt::format("TREERING_BLOCKS={}", 1 + i / 2 % 2),
                             fmt::format("TREERING_WIRE={}", i % 4 == 1 ? "ll" : "auto")},
             .id = id});
    job.expect_all("in the call");
    let_pass(random);
    const auto killed = Clock::now();
    job.kill(victim, SIGKILL);
    EXPECT_EQ(job.wait(victim), -SIGKILL);
    std::vector<Resources> before(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r) {
      if (r == victim) continue;
      const auto heard = Clock::time_point(Clock::duration(std::stoll(job.hear(r)))) - killed;
      const Outcome o = job.hear_outcome(r);
      slowest = std::max(slowest, heard);
      EXPECT_LT(heard, 10s);
      EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
      EXPECT_THAT(o.ranks, ElementsAre(victim)) << testing::PrintToString(o);
      EXPECT_THAT(o.text, HasSubstr(fmt::format("rank {} is gone", victim)));
      before[static_cast<std::size_t>(r)] = Resources::parse(job.hear(r));
    }
    job.tell_all("sweep");
    for (int r = 0; r < size; ++r) {
      if (r == victim) continue;
      const Resources& then = before[static_cast<std::size_t>(r)];
      const Resources now = Resources::parse(job.hear(r));
      EXPECT_EQ(now.descriptors, then.descriptors) << "rank " << r;
      EXPECT_EQ(now.threads, then.threads) << "rank " << r;
      EXPECT_EQ(now.arena, then.arena) << "rank " << r;
      EXPECT_EQ(job.wait(r), 0);
    }
    expect_nothing_left(id);
  }
  std::cout << "the slowest error came after "
            << std::chrono::duration_cast<std::chrono::milliseconds>(slowest).count() << " ms\n";
}

TEST_P(Killed, TheWholeJobLeavesNothing) {
  constexpr int times = 7;
  std::mt19937 random(static_cast<unsigned>(815 + GetParam()));
  for (int i = 0; i < times; ++i) {
    const UniqueId id = UniqueId::create();
    Job job("loop", GetParam(), {.argument = i % 2 == 0 ? "registered" : "private", .id = id});
    job.expect_all("in the call");
    let_pass(random);
    for (int r = 0; r < job.size(); ++r) job.kill(r, SIGKILL);
    for (int r = 0; r < job.size(); ++r) EXPECT_EQ(job.wait(r), -SIGKILL);
    expect_nothing_left(id);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Killed, testing::Values(2, 3, 4));

/// Loops over one collective until it fails; the argument names it.
const RegisterProgram loop_of("loop of", [](const RankProcess& self) {
  const Case one{.pattern = {.collective = parse_collective(self.argument),
                             .type = DataType::f32,
                             .op = ReduceOp::sum,
                             .ranks = self.size,
                             .count = 50'000,
                             .seed = 1}};
  Communicator comm = self.join();
  Side side(one, self.rank);
  side.call(comm);
  self.say(side.faults());
  self.say(outcome_of([&] {
             for (;;) side.call(comm);
           }).line());
});

class KilledIn : public testing::TestWithParam<Collective> {};

/// The root and another; with a root some ranks wait only for it, and it for few.
TEST_P(KilledIn, TheMiddleOfACall) {
  constexpr int size = 3;
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  for (int victim = 0; victim < 2; ++victim) {
    Job job("loop of", size, {.argument = name(GetParam())});
    job.expect_all("");
    let_pass(random);
    job.kill(victim, SIGKILL);
    EXPECT_EQ(job.wait(victim), -SIGKILL);
    for (int r = 0; r < size; ++r) {
      if (r == victim) continue;
      const Outcome o = job.hear_outcome(r);
      EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
      EXPECT_THAT(o.ranks, ElementsAre(victim)) << testing::PrintToString(o);
      EXPECT_EQ(job.wait(r), 0);
    }
  }
}

std::vector<Collective> all_collectives() {
  std::vector<Collective> all;
  for (int i = 0; i < collectives; ++i) all.push_back(static_cast<Collective>(i));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, KilledIn, testing::ValuesIn(all_collectives()),
                         [](const auto& tested) { return std::string(name(tested.param)); });

/// Ranks are told one by one what to do: "call", "exit", "destroy", "end".
const RegisterProgram told("told", [](const RankProcess& self) {
  std::optional<Communicator> comm(self.join());
  self.say("ready");
  for (int calls = 0;;) {
    const std::string word = self.hear();
    if (word == "call") {
      std::string faults;
      const Outcome o =
          outcome_of([&] { faults = checked_call(*comm, all_reduce(self.size, 10'000, ++calls)); });
      self.say(faults.empty() ? o.line() : faults);
    }
    if (word == "exit") std::_Exit(0);
    if (word == "destroy") comm.reset();
    if (word == "destroy") self.say("destroyed");
    if (word == "check") self.say(outcome_of([&] { comm->check(); }).line());
    if (word == "end" || word.empty()) return;
  }
});

void expect_correct_calls(Job& job) {
  job.tell_all("call");
  for (const Outcome& o : job.hear_outcomes()) EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

TEST(Exited, ARankThatDidNotDestroyItsCommunicatorIsLost) {
  Job job("told", 3);
  job.expect_all("ready");
  expect_correct_calls(job);
  job.tell(0, "call");
  job.tell(2, "call");
  job.tell(1, "exit");
  EXPECT_EQ(job.wait(1), 0);
  for (const int r : {0, 2}) {
    const Outcome o = job.hear_outcome(r);
    EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
    EXPECT_THAT(o.ranks, ElementsAre(1));
    EXPECT_LT(o.took, 10s);
  }
}

TEST(Exited, ARankThatDestroyedItIsNotMissed) {
  Job job("told", 3);
  job.expect_all("ready");
  expect_correct_calls(job);
  job.tell(1, "destroy");
  EXPECT_EQ(job.hear(1), "destroyed");
  job.tell(1, "end");
  EXPECT_EQ(job.wait(1), 0);
  for (const int r : {0, 2}) {
    job.tell(r, "check");
    EXPECT_TRUE(job.hear_outcome(r).ok());
    job.tell(r, "end");
    EXPECT_EQ(job.wait(r), 0);
  }
}

TEST(Exited, ACallWithoutARankThatLeftIsAnError) {
  Job job("told", 3);
  job.expect_all("ready");
  expect_correct_calls(job);
  job.tell(1, "destroy");
  EXPECT_EQ(job.hear(1), "destroyed");
  for (const int r : {0, 2}) job.tell(r, "call");
  for (const int r : {0, 2}) {
    const Outcome o = job.hear_outcome(r);
    EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
    EXPECT_THAT(o.ranks, ElementsAre(1));
    EXPECT_THAT(o.text, HasSubstr("rank 1 is gone"));
  }
}

TEST(Stopped, ARankThatStandsStillIsWaitedFor) {
  Job job("told", 3);
  job.expect_all("ready");
  expect_correct_calls(job);
  job.kill(1, SIGSTOP);
  job.tell_all("call");
  std::this_thread::sleep_for(2s);  // as long as it stands still
  job.kill(1, SIGCONT);
  for (const Outcome& o : job.hear_outcomes()) EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
  expect_correct_calls(job);
}

}  // namespace
}  // namespace treering::test
