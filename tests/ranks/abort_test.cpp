// abort() ends every wait of every rank, whoever calls it and when.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>

#include "collectives/access.hpp"
#include "tests/ranks/changed_device.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto f32 = DataType::f32;
constexpr auto sum = ReduceOp::sum;
constexpr auto soon = 5s;  // it takes milliseconds

Case all_reduce(int size, std::size_t count) {
  return {.pattern = {Collective::all_reduce, f32, sum, size, count, 1}};
}

void expect_aborted(const Outcome& o, int by) {
  EXPECT_EQ(o.code, ErrorCode::aborted) << testing::PrintToString(o);
  EXPECT_THAT(o.ranks, ElementsAre(by)) << testing::PrintToString(o);
  EXPECT_LT(o.took, soon);
}

/// What the ranks that do call are waiting in.
using Wait = void (*)(Communicator&, float* data, const CallOptions&);

struct Kind {
  const char* name;
  Wait wait;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const Kind waits[] = {
    {"barrier", [](Communicator& c, float*, const CallOptions& how) { c.barrier(how); }},
    {"one_shot", [](Communicator& c, float* data,
                    const CallOptions& how) { c.all_reduce(data, data, 10, f32, sum, how); }},
    {"two_shot", [](Communicator& c, float* data,
                    const CallOptions& how) { c.all_reduce(data, data, 100'000, f32, sum, how); }},
    {"ring",
     [](Communicator& c, float* data, const CallOptions& how) {
       const CallOptions by_ring{.stream = how.stream, .algorithm = Algorithm::ring};
       c.all_reduce(data, data, 100'000, f32, sum, by_ring);
     }},
    {"ll",
     [](Communicator& c, float* data, const CallOptions& how) {
       const CallOptions over_ll{.stream = how.stream, .wire = WireType::ll};
       c.all_reduce(data, data, 100'000, f32, sum, over_ll);
     }},
    {"all_to_all", [](Communicator& c, float* data, const CallOptions& how) {
       c.all_to_all(data, data, 25'000, f32, how);
     }}};

class Abort : public testing::TestWithParam<Kind> {
 protected:
  static constexpr int size = 4;
  std::vector<Communicator> comms_ = Communicator::create_local(size);
  std::vector<std::vector<float>> data_{size, std::vector<float>(100'000)};

  Communicator& comm(int rank) { return comms_[static_cast<std::size_t>(rank)]; }
  float* data(int rank) { return data_[static_cast<std::size_t>(rank)].data(); }
};

/// Rank 3 is missing; `aborter` calls abort() while the others wait, or before they do.
TEST_P(Abort, EndsBlockingCalls) {
  for (int aborter = 0; aborter < size; ++aborter) {
    SCOPED_TRACE(fmt::format("aborted by rank {}", aborter));
    comms_ = Communicator::create_local(size);
    std::latch calling(size - 1);
    auto abort = std::async(std::launch::async, [&] {
      calling.wait();
      comm(aborter).abort();
    });
    for (const Outcome& o : on_threads(size - 1, [&](int rank) {
           calling.count_down();
           GetParam().wait(comm(rank), data(rank), {});
         }))
      expect_aborted(o, aborter);
    abort.get();
    expect_aborted(outcome_of([&] { GetParam().wait(comm(3), data(3), {}); }), aborter);
  }
}

TEST_P(Abort, EndsStreams) {
  std::vector<Stream> streams(size - 1);
  for (int rank = 0; rank < size - 1; ++rank)
    GetParam().wait(comm(rank), data(rank), {.stream = &streams[static_cast<std::size_t>(rank)]});
  comm(1).abort();
  for (Stream& stream : streams) expect_aborted(outcome_of([&] { stream.synchronize(); }), 1);
}

TEST_P(Abort, BeforeTheCall) {
  comm(2).abort();
  for (const Outcome& o :
       on_threads(size, [&](int rank) { GetParam().wait(comm(rank), data(rank), {}); }))
    expect_aborted(o, 2);
}

TEST_P(Abort, AfterTheCall) {
  for (const Outcome& o :
       on_threads(size, [&](int rank) { GetParam().wait(comm(rank), data(rank), {}); }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
  comm(0).abort();
  for (int rank = 0; rank < size; ++rank)
    expect_aborted(outcome_of([&] { comm(rank).check(); }), 0);
}

INSTANTIATE_TEST_SUITE_P(While, Abort, testing::ValuesIn(waits),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(AbortAgain, IsTheSameAsOnce) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  comms[0].abort();
  comms[0].abort();
  const std::string text = outcome_of([&] { comms[0].check(); }).text;
  EXPECT_THAT(text, HasSubstr("rank 0: the communicator was aborted"));
  comms[0].abort();
  EXPECT_EQ(outcome_of([&] { comms[0].check(); }).text, text);
  EXPECT_EQ(outcome_of([&] { comms[1].check(); }).text, "rank 1: rank 0 aborted the communicator");
}

TEST(AbortAgain, FromManyThreadsWhileRanksCall) {
  constexpr int size = 3;
  for (int round = 0; round < 20; ++round) {
    std::vector<Communicator> comms = Communicator::create_local(size);
    std::latch calling(size);
    for (const Outcome& o : on_threads(3 * size, [&](int i) {
           Communicator& comm = comms[static_cast<std::size_t>(i % size)];
           if (i >= size) {
             calling.wait();
             comm.abort();
             return;
           }
           std::vector<float> data(50'000);
           calling.count_down();
           for (;;) comm.all_reduce(data.data(), data.data(), data.size(), f32, sum);
         })) {
      EXPECT_TRUE(o.ok() || o.code == ErrorCode::aborted) << testing::PrintToString(o);
      EXPECT_LT(o.took, soon);
    }
  }
}

TEST(AbortOf, OneCommunicatorLeavesOthersAlone) {
  Team team(3);
  std::vector<Communicator> comms = Communicator::create_local(3);
  Stream stream;
  comms[0].barrier({.stream = &stream});
  comms[1].abort();
  expect_aborted(outcome_of([&] { stream.synchronize(); }), 1);
  check(team, all_reduce(3, 10'000));
}

TEST(AbortOf, OneRankOfManyProcesses) {
  Job job("aborts", 3);
  job.expect_all("in the call");
  job.tell(2, "abort");
  for (const Outcome& o : job.hear_outcomes()) expect_aborted(o, 2);
  for (int r = 0; r < 3; ++r) EXPECT_EQ(job.wait(r), 0);
}

/// Calls until aborted; rank 2 only waits for the word to abort.
const RegisterProgram aborts("aborts", [](const RankProcess& self) {
  Communicator comm = self.join();
  std::vector<float> data(1000);
  self.say("in the call");
  const Outcome o = outcome_of([&] {
    if (self.rank == 2) {
      self.hear();
      comm.abort();
    }
    for (;;) comm.all_reduce(data.data(), data.data(), data.size(), f32, sum);
  });
  self.say(o.line());
});

/// A device whose memory is used up once the communicator stands.
class FullDevice final : public ChangedDevice {
 public:
  std::atomic<bool> full = false;
  void back(void* part, std::size_t bytes) override {
    if (full) throw Error(ErrorCode::out_of_memory, "nothing is left");
    ChangedDevice::back(part, bytes);
  }
};

/// The others would wait for it: they hear that it has no memory, not only that it gave up.
TEST(NoMemory, OfOneRankIsSaidByAll) {
  static FullDevice machine;  // seats may outlive the test
  machine.full = false;
  const UniqueId id = UniqueId::create();
  std::latch joined(3);
  const std::vector<Outcome> outcomes = on_threads(3, [&](int rank) {
    Communicator comm = join_on(rank == 1 ? machine : device(), id, 3, rank);
    joined.arrive_and_wait();
    if (rank == 1) machine.full = true;
    float x = 1, y = 0;
    comm.all_reduce(&x, &y, 1, f32, sum);
  });
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& o = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(o.code, ErrorCode::out_of_memory) << testing::PrintToString(o);
    EXPECT_THAT(o.text, HasSubstr(rank == 1 ? "all_reduce on rank 1: nothing is left"
                                            : "a call failed on rank 1 (out_of_memory)"));
    EXPECT_LT(o.took, soon);
  }
  EXPECT_THAT(outcomes[0].ranks, ElementsAre(1));
  EXPECT_THAT(outcomes[2].ranks, ElementsAre(1));
}

}  // namespace
}  // namespace treering::test
