// Three communicators over the same ranks at once. Each communicator's calls come in the same order on all ranks;
// in between, every rank interleaves them as its own dice say: by threads, by streams, by both.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "tests/ranks/cases.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

constexpr int communicators = 3;

/// What the ranks of one communicator call.
std::vector<Case> script(int size, int calls, std::uint64_t seed) {
  const CallSpace space({size}, 4099);
  const auto rows = pairwise_covering(space.space(), seed);
  std::vector<Case> all;
  for (std::size_t i = 0; i < static_cast<std::size_t>(calls); ++i)
    all.push_back(space.case_of(rows.at(i), seed * 1000 + i));
  return all;
}

/// One rank's calls on some communicators, in an order of its own. A communicator's calls go to any of two streams
/// that no other communicator uses, since what waits in one stream for another communicator might wait for ever.
class Caller {
 public:
  /// `mix`: now and then a call is blocking, for which there must be nobody to wait for but threads of other callers.
  Caller(int rank, std::uint64_t dice, bool mix = false) : rank_(rank), dice_(dice), mix_(mix) {}

  void join(Communicator& comm, const std::vector<Case>& calls) {
    parts_.push_back({&comm, &calls});
    left_ += calls.size();
  }

  bool done() const { return left_ == 0; }

  /// The next call of any communicator.
  void step() {
    std::vector<Part*> unfinished;
    for (Part& part : parts_)
      if (part.next < part.calls->size()) unfinished.push_back(&part);
    Part& part = *unfinished[dice_() % unfinished.size()];
    sides_.push_back(std::make_unique<Side>((*part.calls)[part.next++], rank_));
    --left_;
    Stream* stream = mix_ && dice_() % 3 == 0 ? nullptr : &part.streams[dice_() % 2];
    sides_.back()->call(*part.comm, {.stream = stream});
  }

  /// What went wrong, when all has been done.
  std::string faults() {
    for (Part& part : parts_)
      for (Stream& stream : part.streams) stream.synchronize();
    std::string text;
    for (const auto& side : sides_) text += side->faults();
    return text;
  }

  std::string run() {
    while (!done()) step();
    return faults();
  }

 private:
  struct Part {
    Communicator* comm;
    const std::vector<Case>* calls;
    std::size_t next = 0;
    std::vector<Stream> streams = std::vector<Stream>(2);
  };
  int rank_;
  std::mt19937_64 dice_;
  bool mix_;
  std::size_t left_ = 0;
  std::vector<std::unique_ptr<Side>> sides_;  // outlive the streams, whose work uses them
  std::vector<Part> parts_;
};

std::uint64_t dice_of(std::uint64_t seed, int rank, int communicator = 0) {
  return seed * 100 + static_cast<std::uint64_t>(rank * 10 + communicator);
}

class Concurrency : public testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr int size = 3;

  void SetUp() override {
    fmt::print("seed {}\n", GetParam());
    for (std::uint64_t c = 0; c < communicators; ++c) {
      comms_.push_back(Communicator::create_local(size));
      scripts_.push_back(script(size, calls(), GetParam() * communicators + c));
    }
  }
  virtual int calls() const { return 60; }
  Communicator& comm(int communicator, int rank) {
    return comms_[static_cast<std::size_t>(communicator)][static_cast<std::size_t>(rank)];
  }
  const std::vector<Case>& calls_of(int communicator) const {
    return scripts_[static_cast<std::size_t>(communicator)];
  }
  void join_all(Caller& caller, int rank) {
    for (int c = 0; c < communicators; ++c) caller.join(comm(c, rank), calls_of(c));
  }

  std::vector<std::vector<Communicator>> comms_;
  std::vector<std::vector<Case>> scripts_;
};

TEST_P(Concurrency, AThreadForEachRankAndCommunicator) {
  for (const Outcome& o : on_threads(size * communicators, [&](int i) {
         const int rank = i / communicators, c = i % communicators;
         Caller caller(rank, dice_of(GetParam(), rank, c), true);
         caller.join(comm(c, rank), calls_of(c));
         EXPECT_EQ(caller.run(), "");
       }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

TEST_P(Concurrency, AThreadForEachRank) {
  for (const Outcome& o : on_threads(size, [&](int rank) {
         Caller caller(rank, dice_of(GetParam(), rank));
         join_all(caller, rank);
         EXPECT_EQ(caller.run(), "");
       }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

class ConcurrencyOfStreams : public Concurrency {
 protected:
  int calls() const override { return 20; }
};

/// In the simulated GPU as well.
TEST_P(ConcurrencyOfStreams, OneThread) {
  std::vector<std::unique_ptr<Caller>> callers;
  for (int rank = 0; rank < size; ++rank) {
    callers.push_back(std::make_unique<Caller>(rank, dice_of(GetParam(), rank)));
    join_all(*callers.back(), rank);
  }
  std::mt19937_64 dice(GetParam());
  for (int step = 0; step < size * communicators * calls();) {
    Caller& caller = *callers[dice() % callers.size()];
    if (caller.done()) continue;
    caller.step();
    ++step;
  }
  for (auto& caller : callers) EXPECT_EQ(caller->faults(), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, Concurrency, testing::Values(1, 2, 3));
INSTANTIATE_TEST_SUITE_P(Seeds, ConcurrencyOfStreams, testing::Values(1, 2, 3));

/// A process for each rank, with a thread for each communicator, or one for all. Argument: "threads SEED" or
/// "streams SEED".
const RegisterProgram concurrently("concurrently", [](const RankProcess& self) {
  const bool threads = self.argument.starts_with("threads");
  const std::uint64_t seed = std::stoull(self.argument.substr(self.argument.find(' ')));
  std::vector<Communicator> comms;
  std::vector<std::vector<Case>> scripts;
  for (std::uint64_t c = 0; c < communicators; ++c) {
    comms.push_back(Communicator::create(UniqueId::parse(self.hear()), self.size, self.rank));
    scripts.push_back(script(self.size, 60, seed * communicators + c));
  }
  std::vector<std::string> faults(communicators);
  const auto run = [&](int first, int last) {
    Caller caller(self.rank, dice_of(seed, self.rank, first), threads);
    for (int c = first; c < last; ++c)
      caller.join(comms[static_cast<std::size_t>(c)], scripts[static_cast<std::size_t>(c)]);
    faults[static_cast<std::size_t>(first)] = caller.run();
  };
  if (threads)
    for (const Outcome& o : on_threads(communicators, [&](int c) { run(c, c + 1); })) {
      if (!o.ok()) faults[0] += o.line();
    }
  else
    run(0, communicators);
  self.say(faults[0] + faults[1] + faults[2]);
});

TEST(ConcurrencyOfProcesses, IsExact) {
  for (const char* how : {"threads 1", "streams 1", "threads 2", "streams 2"}) {
    SCOPED_TRACE(how);
    Job job("concurrently", 3, {.argument = how});
    for (int c = 0; c < communicators; ++c) job.tell_all(UniqueId::create().text());
    job.expect_all("");
  }
}

}  // namespace
}  // namespace treering::test
