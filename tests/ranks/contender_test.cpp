// What `treering perf --versus` does with peers, good and bad: it names what went wrong, waits no
// longer than it must, and leaves no process behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "perf/versus/contender.hpp"
#include "tests/ranks/fake_peer.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int ranks = 3;
constexpr milliseconds little{300};

/// A contender whose ranks behave in one way, started one by one.
class FakeContender {
 public:
  explicit FakeContender(const std::string& behaviour, milliseconds patience = usual_patience)
      : contender_("fake", ranks, patience) {
    for (int rank = 0; rank < ranks; ++rank)
      contender_.launch(test::fake_peer(behaviour, contender_.address(), rank));
  }
  Contender& met() {
    contender_.meet(false);
    return contender_;
  }

 private:
  Contender contender_;
};

Order order_of(Order::Kind kind, Collective collective) {
  Order order;
  order.kind = kind;
  order.case_number = 0;
  order.what = {collective, DataType::f32, ReduceOp::sum, 5, 20, 0};
  order.warmups = 1;
  order.iterations = 3;
  return order;
}

Order barriers() { return order_of(Order::Kind::time, Collective::barrier); }

template <class Body>
std::string error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_lost);
    return error.what();
  }
  return "no error";
}

/// None of them runs any more. Those that another process must reap may be on their way out.
void expect_gone(const std::vector<int>& processes) {
  EXPECT_FALSE(processes.empty());
  for (const int process : processes) EXPECT_NE(kill(process, 0), 0) << process;
}

TEST(Contender, AnswersOrdersInTurn) {
  FakeContender fake("good");
  Contender& contender = fake.met();
  EXPECT_EQ(contender.version(), "fake of 3");
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<Answer> answers = contender.ask(barriers());
    ASSERT_EQ(answers.size(), 3u);
    for (int rank = 0; rank < ranks; ++rank) {
      const Answer& answer = answers[static_cast<std::size_t>(rank)];
      EXPECT_EQ(answer.rank, rank);
      EXPECT_EQ(answer.kind, Answer::Kind::result);
      EXPECT_EQ(answer.seconds, answers[0].seconds) << "all say the slowest's time";
      EXPECT_GT(answer.total_seconds, 3 * answer.seconds / 2);
    }
  }
}

TEST(Contender, OneThatIsSlowIsWaitedFor) {
  FakeContender fake("slow");
  EXPECT_GE(fake.met().ask(barriers()).front().seconds, 0.02);
}

TEST(Contender, WrongElementsAreCountedOnEachRank) {
  FakeContender fake("wrong");
  const auto answers = fake.met().ask(order_of(Order::Kind::check, Collective::broadcast));
  EXPECT_EQ(answers[0].wrong, 0u) << "the root has its own already";
  EXPECT_EQ(answers[1].wrong, 5u);
  EXPECT_EQ(answers[2].wrong, 5u);
}

TEST(Contender, OneThatHasNoSuchCallSaysSo) {
  FakeContender fake("cannot");
  Contender& contender = fake.met();
  for (const Answer& answer : contender.ask(barriers()))
    EXPECT_EQ(answer.kind, Answer::Kind::cannot);
  Order probe;
  probe.kind = Order::Kind::probe;
  EXPECT_GT(contender.ask(probe).front().seconds, 0) << "and goes on";
}

TEST(Contender, TheDistanceIsAFlagExchange) {
  FakeContender fake("good");
  Order probe;
  probe.kind = Order::Kind::probe;
  Contender& contender = fake.met();
  for (int turn = 0; turn < 3; ++turn) {
    const double seconds = contender.ask(probe).front().seconds;
    EXPECT_GT(seconds, 1e-9);
  }
}

/// Ranks that misbehave in their first call, and what is said about them.
struct Misbehaviour {
  const char* behaviour;
  const char* text;
};
class ContenderGivenUp : public testing::TestWithParam<Misbehaviour> {};

TEST_P(ContenderGivenUp, IsNamedAndLeavesNothingBehind) {
  const bool waits = std::string(GetParam().text).find("silent") != std::string::npos;
  FakeContender fake(GetParam().behaviour, waits ? little : usual_patience);
  Contender& contender = fake.met();
  const std::vector<int> processes = contender.processes();
  EXPECT_THAT(error_of([&] { contender.ask(barriers()); }),
              AllOf(StartsWith("fake: "), HasSubstr(GetParam().text)));
  expect_gone(processes);
}

INSTANTIATE_TEST_SUITE_P(
    Versus, ContenderGivenUp,
    testing::Values(Misbehaviour{"silent", "it was silent for 0.3 s"},
                    Misbehaviour{"stuck", "it was silent for 0.3 s"},
                    Misbehaviour{"dies", "rank 1 ended"},
                    Misbehaviour{"fails", "rank 1: out of paper"},
                    Misbehaviour{"short_answer", "does not speak this version's protocol"},
                    Misbehaviour{"other_magic", "does not speak this version's protocol"}),
    [](const auto& tested) { return std::string(tested.param.behaviour); });

TEST(Contender, OneThatDoesNotComeIsNamed) {
  FakeContender fake("absent", little);
  EXPECT_EQ(error_of([&] { fake.met(); }), "fake: it did not start within 0.3 s");
}

TEST(Contender, OneThatEndsBeforeItStartsIsNamedWithWhatItPrinted) {
  FakeContender fake("quits");
  const std::string text = error_of([&] { fake.met(); });
  EXPECT_THAT(text, StartsWith("fake: what starts it has ended before its ranks were there"));
  EXPECT_THAT(text, HasSubstr("no licence for this machine"));
}

TEST(Contender, ARankThatDoesNotExistIsRefused) {
  FakeContender fake("impostor");
  EXPECT_EQ(error_of([&] { fake.met(); }), "fake: a rank says that it is 7 of 3");
}

TEST(Contender, RanksEndWithIt) {
  std::vector<int> processes;
  {
    FakeContender fake("good");
    processes = fake.met().processes();
    EXPECT_EQ(processes.size(), 6u) << "3 ranks, each its own launcher";
  }
  expect_gone(processes);
}

TEST(Contender, AProgramThatIsNotThereIsAnError) {
  Contender contender("fake", 2);
  EXPECT_THROW(contender.launch({"/no/such/program"}), Error);
}

}  // namespace
}  // namespace treering::perf
