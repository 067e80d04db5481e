// Ranks that call different things: every rank gets the same error, which shows both calls.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "base/rank_list.hpp"
#include "kernels/exec/device.hpp"
#include "perf/call.hpp"
#include "tests/ranks/guarded.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto f32 = DataType::f32;
constexpr auto sum = ReduceOp::sum;
constexpr std::size_t small = 5, medium = 1024, large = 1'000'003;

/// What one rank calls.
struct Called {
  Collective collective;
  std::size_t count = medium;
  DataType type = f32;
  ReduceOp op = sum;
  std::optional<Algorithm> algorithm = {};
  std::optional<WireType> wire = {};
};

/// Two calls that do not go together.
struct Kind {
  Called usual, odd;
};

constexpr auto all_reduce = Collective::all_reduce;
constexpr auto reduce_scatter = Collective::reduce_scatter;
constexpr auto all_gather = Collective::all_gather;
constexpr auto all_to_all = Collective::all_to_all;
constexpr auto barrier = Collective::barrier;

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      // another operation; a barrier too many
      {{all_reduce}, {all_gather}},
      {{all_reduce, large}, {all_gather, large}},
      {{all_reduce}, {reduce_scatter}},
      {{all_reduce, small}, {reduce_scatter, small}},
      {{all_reduce}, {all_to_all}},
      {{all_reduce, large}, {all_to_all, small}},
      {{all_reduce}, {barrier, 0, DataType::u8}},
      {{all_reduce, large}, {barrier, 0, DataType::u8}},
      {{reduce_scatter}, {all_gather}},
      {{reduce_scatter, large}, {all_to_all, large}},
      {{reduce_scatter}, {barrier, 0, DataType::u8}},
      {{all_gather}, {all_to_all}},
      {{all_gather, small}, {all_to_all, small}},
      {{all_gather, large}, {barrier, 0, DataType::u8}},
      {{all_to_all}, {barrier, 0, DataType::u8}},
      {{barrier, 0, DataType::u8}, {all_reduce}},
      {{barrier, 0, DataType::u8}, {all_reduce, 0}},
      {{barrier, 0, DataType::u8}, {all_gather, 0, DataType::u8}},
      // another count
      {{all_reduce, 0}, {all_reduce, 1}},
      {{all_reduce, 3}, {all_reduce, 4}},
      {{all_reduce, 1024}, {all_reduce, 1025}},
      {{all_reduce, 1}, {all_reduce, large}},
      {{all_reduce, large}, {all_reduce, large + 1}},
      {{all_reduce, large}, {all_reduce, small}},
      {{reduce_scatter, 7}, {reduce_scatter, 8}},
      {{reduce_scatter, large}, {reduce_scatter, large - 1}},
      {{all_gather, 5}, {all_gather, 6}},
      {{all_gather, large}, {all_gather, 1}},
      {{all_to_all, 16}, {all_to_all, 17}},
      {{all_to_all, 3}, {all_to_all, large}},
      // another type, of the same size or not
      {{all_reduce, medium, f32}, {all_reduce, medium, DataType::i32}},
      {{all_reduce, large, f32}, {all_reduce, large, DataType::f64}},
      {{all_reduce, small, DataType::f16}, {all_reduce, small, DataType::bf16}},
      {{reduce_scatter, medium, DataType::i64}, {reduce_scatter, medium, DataType::u64}},
      {{reduce_scatter, large, DataType::f64}, {reduce_scatter, large, DataType::i64}},
      {{all_gather, medium, DataType::u8}, {all_gather, medium, DataType::i8}},
      {{all_gather, 2048, DataType::u8}, {all_gather, 512, f32}},
      {{all_to_all, medium, f32}, {all_to_all, medium, DataType::u32}},
      {{all_to_all, large, DataType::bf16}, {all_to_all, large, DataType::f16}},
      // another operator
      {{all_reduce, medium, f32, sum}, {all_reduce, medium, f32, ReduceOp::max}},
      {{all_reduce, large, f32, ReduceOp::avg}, {all_reduce, large, f32, sum}},
      {{all_reduce, small, f32, ReduceOp::prod}, {all_reduce, small, f32, sum}},
      {{reduce_scatter, medium, f32, ReduceOp::min}, {reduce_scatter, medium, f32, ReduceOp::max}},
      {{reduce_scatter, large, f32, sum}, {reduce_scatter, large, f32, ReduceOp::avg}},
      // another algorithm
      {{all_reduce, medium, f32, sum, Algorithm::ring},
       {all_reduce, medium, f32, sum, Algorithm::one_shot}},
      {{all_reduce, large, f32, sum, Algorithm::two_shot},
       {all_reduce, large, f32, sum, Algorithm::ring}},
      {{all_reduce, small, f32, sum, Algorithm::one_shot},
       {all_reduce, small, f32, sum, Algorithm::two_shot}},
      {{reduce_scatter, medium, f32, sum, Algorithm::ring},
       {reduce_scatter, medium, f32, sum, Algorithm::direct}},
      {{all_gather, large, f32, sum, Algorithm::direct},
       {all_gather, large, f32, sum, Algorithm::ring}},
      // another wire
      {{all_reduce, small, f32, sum, Algorithm::one_shot, WireType::ll},
       {all_reduce, small, f32, sum, Algorithm::one_shot, WireType::simple}},
      {{all_gather, large, f32, sum, Algorithm::ring, WireType::simple},
       {all_gather, large, f32, sum, Algorithm::ring, WireType::ll}},
      // over LL
      {{all_reduce, small, f32, sum, Algorithm::one_shot, WireType::ll},
       {all_reduce, small + 1, f32, sum, Algorithm::one_shot, WireType::ll}},
      {{all_reduce, large, f32, sum, Algorithm::two_shot, WireType::ll},
       {all_gather, medium, f32, sum, Algorithm::direct, WireType::ll}},
      {{all_to_all, medium, f32, sum, Algorithm::direct, WireType::ll}, {barrier, 0, DataType::u8}},
      // the same algorithm in another operation
      {{all_reduce, medium, f32, sum, Algorithm::ring},
       {all_gather, medium, f32, sum, Algorithm::ring}},
      {{reduce_scatter, large, f32, sum, Algorithm::ring},
       {all_gather, large, f32, sum, Algorithm::ring}},
  };
  return all;
}

/// One mismatch among `size` ranks: who is odd depends on its number, and so does the rest.
struct Scene {
  std::size_t number;
  int size;

  const Kind& kind() const { return kinds()[number]; }
  bool two_camps() const { return number % 4 == 3; }
  bool is_odd(int rank) const {
    return two_camps() ? rank % 2 == 1 : rank == static_cast<int>(number) % size;
  }
  const Called& called_by(int rank) const { return is_odd(rank) ? kind().odd : kind().usual; }
  bool registered() const { return number % 2 == 0; }
  int barriers_before() const { return static_cast<int>(number % 3) * 8; }

  std::vector<int> ranks(bool odd) const {
    std::vector<int> all;
    for (int r = 0; r < size; ++r)
      if (is_odd(r) == odd) all.push_back(r);
    return all;
  }
};

std::string describe(const Called& call) {
  switch (call.collective) {
    case barrier:
      return "barrier()";
    case all_reduce:
    case reduce_scatter:
      return fmt::format("{}({} × {}, {}", name(call.collective), name(call.type), call.count,
                         name(call.op));
    default:
      return fmt::format("{}({} × {}", name(call.collective), name(call.type), call.count);
  }
}

/// How the error begins; for calls that differ in their algorithm only, it goes on with that.
std::string expected_text(const Scene& scene) {
  const Kind& kind = scene.kind();
  const bool plan_only = describe(kind.usual) == describe(kind.odd);
  const bool odd_first = scene.ranks(true).size() < scene.ranks(false).size() ||
                         (scene.ranks(true).size() == scene.ranks(false).size() && scene.is_odd(0));
  std::string text =
      fmt::format("call {}: {} called {}", scene.barriers_before() + 1,
                  rank_list(scene.ranks(odd_first)), describe(odd_first ? kind.odd : kind.usual));
  if (plan_only)
    return text + fmt::format(", by {}", name(*(odd_first ? kind.odd : kind.usual).algorithm));
  if (!text.ends_with(")")) text += ")";
  text += fmt::format(", {} called {}", rank_list(scene.ranks(!odd_first)),
                      describe(odd_first ? kind.usual : kind.odd));
  return text.ends_with(")") ? text + "." : text + ").";
}

/// The likely culprits: the smaller camp.
std::vector<int> expected_ranks(const Scene& scene) {
  const auto odd = scene.ranks(true), usual = scene.ranks(false);
  return odd.size() < usual.size() || (odd.size() == usual.size() && scene.is_odd(0)) ? odd : usual;
}

Pattern pattern(const Called& call, int size) {
  return {call.collective, call.type, call.op, size, call.count, 1};
}

/// A rank's buffers for a call that will fail.
struct Buffers {
  Buffers(const Called& call, int size, bool registered)
      : call_pattern(pattern(call, size)),
        input(most_elements(call_pattern) * size_of(call.type), registered),
        output(most_elements(call_pattern) * size_of(call.type), registered) {}

  Pattern call_pattern;
  Guarded input, output;
};

/// A correct call, to be made afterwards on another communicator.
Case correct_call(int size, std::uint64_t seed) {
  return {.pattern = {all_reduce, f32, sum, size, 1000, seed}};
}

/// What one rank has to say of a scene.
struct Part {
  Outcome outcome;
  std::string faults;
};

Part play(const Scene& scene, Communicator& comm, Communicator& other) {
  const int rank = comm.rank();
  const Called& mine = scene.called_by(rank);
  Buffers buffers(mine, scene.size, scene.registered());
  for (int i = 0; i < scene.barriers_before(); ++i) comm.barrier();
  Part part;
  part.outcome = outcome_of([&] {
    make_call(comm, buffers.call_pattern, buffers.input.data(), buffers.output.data(),
              {.algorithm = mine.algorithm, .wire = mine.wire});
  });
  if (!buffers.input.untouched()) part.faults += "the input was written to; ";
  if (!buffers.output.intact()) part.faults += "bytes around the output were written to; ";
  part.faults += checked_call(other, correct_call(scene.size, scene.number));
  return part;
}

std::chrono::milliseconds slowest{0};

void check_outcomes(const Scene& scene, const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    SCOPED_TRACE(fmt::format("rank {}", r));
    const Outcome& o = outcomes[r];
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text, StartsWith(expected_text(scene)));
    EXPECT_EQ(o.text, outcomes[0].text);
    EXPECT_EQ(o.ranks, expected_ranks(scene));
    EXPECT_LT(o.took, std::chrono::seconds(20));
    slowest = std::max(slowest, o.took);
  }
}

std::string title(const Scene& scene) {
  return fmt::format("scene {}: {} ranks, {} against {}", scene.number, scene.size,
                     describe(scene.kind().usual), describe(scene.kind().odd));
}

class Mismatch : public testing::TestWithParam<int> {
 public:
  static void SetUpTestSuite() {
    ASSERT_GE(kinds().size(), 40u);
    slowest = {};
  }
  static void TearDownTestSuite() {
    std::cout << "the slowest error came after " << slowest.count() << " ms\n";
  }
};

TEST_P(Mismatch, Team) {
  Team other(GetParam());
  for (std::size_t number = 0; number < kinds().size(); ++number) {
    const Scene scene{number, GetParam()};
    SCOPED_TRACE(title(scene));
    Team team(scene.size);
    std::vector<Buffers> buffers;
    for (int r = 0; r < scene.size; ++r)
      buffers.emplace_back(scene.called_by(r), scene.size, scene.registered());
    for (int i = 0; i < scene.barriers_before(); ++i)
      team.each([](Communicator& comm, const CallOptions& how) { comm.barrier(how); });
    check_outcomes(scene, team.try_each([&](Communicator& comm, CallOptions how) {
      Buffers& mine = buffers[static_cast<std::size_t>(comm.rank())];
      how.algorithm = scene.called_by(comm.rank()).algorithm;
      how.wire = scene.called_by(comm.rank()).wire;
      make_call(comm, mine.call_pattern, mine.input.data(), mine.output.data(), how);
    }));
    for (Buffers& mine : buffers) {
      EXPECT_TRUE(mine.input.untouched());
      EXPECT_TRUE(mine.output.intact());
    }
    check(other, correct_call(scene.size, number));
  }
}

TEST_P(Mismatch, Threads) {
  std::vector<Communicator> others = Communicator::create_local(GetParam());
  for (std::size_t number = 0; number < kinds().size(); ++number) {
    const Scene scene{number, GetParam()};
    SCOPED_TRACE(title(scene));
    std::vector<Communicator> comms = Communicator::create_local(scene.size);
    std::vector<Part> parts(comms.size());
    on_threads(scene.size, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      parts[r] = play(scene, comms[r], others[r]);
    });
    std::vector<Outcome> outcomes;
    for (const Part& part : parts) {
      outcomes.push_back(part.outcome);
      EXPECT_EQ(part.faults, "");
    }
    check_outcomes(scene, outcomes);
  }
}

const RegisterProgram mismatch("mismatch", [](const RankProcess& self) {
  Communicator other = self.join();
  for (std::size_t number = 0; number < kinds().size(); ++number) {
    const UniqueId id = UniqueId::parse(self.hear());
    Communicator comm = Communicator::create(id, self.size, self.rank);
    const Part part = play({number, self.size}, comm, other);
    self.say(part.outcome.line());
    self.say(part.faults);
  }
});

TEST_P(Mismatch, Processes) {
  const int blocks = GetParam() == 3 ? 3 : 1;
  Job job("mismatch", GetParam(), {.environment = {fmt::format("TREERING_BLOCKS={}", blocks)}});
  for (std::size_t number = 0; number < kinds().size(); ++number) {
    const Scene scene{number, GetParam()};
    SCOPED_TRACE(title(scene));
    job.tell_all(UniqueId::create().text());
    std::vector<Outcome> outcomes;
    for (int r = 0; r < scene.size; ++r) {
      outcomes.push_back(job.hear_outcome(r));
      EXPECT_EQ(job.hear(r), "") << "rank " << r;
    }
    check_outcomes(scene, outcomes);
  }
  for (int r = 0; r < job.size(); ++r) EXPECT_EQ(job.wait(r), 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Mismatch, testing::Values(2, 3, 4));

/// Each rank's call as it is told to; the first rank's texts are returned after all were compared.
template <class Call>
std::string mismatch_text(int size, Call call) {
  Team team(size);
  std::vector<float> input(4096), output(static_cast<std::size_t>(size) * 4096);
  std::vector<std::vector<float>> outputs(static_cast<std::size_t>(size), output);
  for (int i = 0; i < 16; ++i)
    team.each([](Communicator& comm, const CallOptions& how) { comm.barrier(how); });
  const auto outcomes = team.try_each([&](Communicator& comm, const CallOptions& how) {
    call(comm, input.data(), outputs[static_cast<std::size_t>(comm.rank())].data(), how);
  });
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.code, ErrorCode::mismatch);
    EXPECT_EQ(o.text, outcomes[0].text);
  }
  return outcomes[0].text;
}

constexpr const char* advice =
    " All ranks must make the same calls in the same order. This communicator is broken; correct "
    "the program, or create a new one.";

TEST(MismatchText, OneRankInAnotherOperation) {
  EXPECT_EQ(mismatch_text(4,
                          [](Communicator& comm, float* in, float* out, const CallOptions& how) {
                            if (comm.rank() == 3) return comm.all_gather(in, out, 1024, f32, how);
                            comm.all_reduce(in, out, 1024, f32, sum, how);
                          }),
            std::string("call 17: rank 3 called all_gather(f32 × 1024), ranks 0–2 called "
                        "all_reduce(f32 × 1024, sum).") +
                advice);
}

TEST(MismatchText, EveryRankInAnother) {
  EXPECT_EQ(mismatch_text(4,
                          [](Communicator& comm, float* in, float* out, const CallOptions& how) {
                            if (comm.rank() == 0) return comm.barrier(how);
                            if (comm.rank() == 1) return comm.all_to_all(in, out, 7, f32, how);
                            if (comm.rank() == 2)
                              return comm.reduce_scatter(in, out, 7, DataType::bf16, ReduceOp::avg,
                                                         how);
                            comm.all_reduce(in, out, 0, DataType::i64, ReduceOp::min, how);
                          }),
            std::string("call 17: rank 0 called barrier(), rank 1 called all_to_all(f32 × 7), rank "
                        "2 called reduce_scatter(bf16 × 7, avg), rank 3 called all_reduce(i64 × 0, "
                        "min).") +
                advice);
}

TEST(MismatchText, TwoCamps) {
  EXPECT_EQ(mismatch_text(4,
                          [](Communicator& comm, float* in, float* out, const CallOptions& how) {
                            const auto op = comm.rank() % 2 == 0 ? ReduceOp::max : ReduceOp::min;
                            comm.all_reduce(in, out, 4096, f32, op, how);
                          }),
            std::string("call 17: ranks 0, 2 called all_reduce(f32 × 4096, max), ranks 1, 3 called "
                        "all_reduce(f32 × 4096, min).") +
                advice);
}

TEST(MismatchText, AlgorithmsAreShownWhereOnlyTheyDiffer) {
  EXPECT_THAT(mismatch_text(3,
                            [](Communicator& comm, float* in, float* out, CallOptions how) {
                              how.algorithm =
                                  comm.rank() == 1 ? Algorithm::ring : Algorithm::one_shot;
                              comm.all_reduce(in, out, 1024, f32, sum, how);
                            }),
              AllOf(StartsWith("call 17: rank 1 called all_reduce(f32 × 1024, sum, by ring over "
                               "simple wires in chunks of "),
                    HasSubstr(", ranks 0, 2 called all_reduce(f32 × 1024, sum, by one_shot over "
                              "simple wires in chunks of ")));
}

/// All ranks' outcomes of two asynchronous calls, of which the second does not fit.
TEST(MismatchInTheNextCall, NamesThatCall) {
  Team team(3);
  std::vector<float> in(300), out(300);
  std::vector<Stream> streams(3);
  std::vector<std::vector<float>> outputs(3, out);
  on_threads(3, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const CallOptions how{.stream = &streams[r]};
    team[rank].all_reduce(in.data(), outputs[r].data(), 300, f32, sum, how);
    if (rank == 1)
      team[rank].all_gather(in.data(), outputs[r].data(), 100, f32, how);
    else
      team[rank].all_to_all(in.data(), outputs[r].data(), 100, f32, how);
    // Nobody waits for these, and they change nothing.
    team[rank].barrier(how);
    team[rank].barrier(how);
  });
  const auto outcomes =
      on_threads(3, [&](int rank) { streams[static_cast<std::size_t>(rank)].synchronize(); });
  for (const Outcome& o : outcomes)
    EXPECT_THAT(o.text, StartsWith("call 2: rank 1 called all_gather(f32 × 100), ranks 0, 2 called "
                                   "all_to_all(f32 × 100)."));
}

/// Whoever failed and does not look (its caller is busy) is heard all the same.
TEST(MismatchInTheNextCall, IsKnownToRanksWhosePeersDoNotLook) {
  Team team(2);
  std::vector<float> in(64), out0(64), out1(64);
  Stream busy;
  team[0].all_reduce(in.data(), out0.data(), 64, f32, sum, {.stream = &busy});
  const Outcome o = outcome_of([&] { team[1].all_reduce(in.data(), out1.data(), 63, f32, sum); });
  EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
  EXPECT_EQ(outcome_of([&] { busy.synchronize(); }).text, o.text);
}

TEST(MismatchOfLateRanks, TheOthersWaitForWhatTheyCall) {
  std::vector<Communicator> comms = Communicator::create_local(4);
  std::vector<float> in(64);
  const auto outcomes = on_threads(4, [&](int rank) {
    std::vector<float> out(256);
    Communicator& comm = comms[static_cast<std::size_t>(rank)];
    if (rank == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it comes late
    if (rank == 1) return comm.all_gather(in.data(), out.data(), 64, f32);
    comm.all_reduce(in.data(), out.data(), 64, f32, sum);
  });
  for (const Outcome& o : outcomes)
    EXPECT_THAT(o.text, StartsWith("call 1: rank 1 called all_gather(f32 × 64), ranks 0, 2, 3 "
                                   "called all_reduce(f32 × 64, sum)."));
}

/// A rank that never comes is said to have called nothing; and gets the error when it does call.
TEST(MismatchOfLateRanks, NobodyWaitsForEver) {
  std::vector<Communicator> comms = Communicator::create_local(3);
  std::vector<float> in(64), out(192);
  const auto outcomes = on_threads(2, [&](int rank) {
    std::vector<float> mine(192);
    Communicator& comm = comms[static_cast<std::size_t>(rank)];
    if (rank == 1) return comm.all_gather(in.data(), mine.data(), 64, f32);
    comm.all_reduce(in.data(), mine.data(), 64, f32, sum);
  });
  for (const Outcome& o : outcomes)
    EXPECT_THAT(o.text, StartsWith("call 1: rank 0 called all_reduce(f32 × 64, sum), rank 1 called "
                                   "all_gather(f32 × 64), rank 2 called nothing yet."));
  const Outcome late =
      outcome_of([&] { comms[2].all_reduce(in.data(), out.data(), 64, f32, sum); });
  EXPECT_EQ(late.code, ErrorCode::mismatch);
}

TEST(MismatchBreaksTheCommunicator, AndItStaysSo) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<float> in(8), out(16);
  const auto outcomes = on_threads(2, [&](int rank) {
    std::vector<float> mine(16);
    comms[static_cast<std::size_t>(rank)].all_gather(in.data(), mine.data(), rank == 0 ? 7u : 8u,
                                                     f32);
  });
  for (int rank = 0; rank < 2; ++rank) {
    Communicator& comm = comms[static_cast<std::size_t>(rank)];
    const std::string& text = outcomes[static_cast<std::size_t>(rank)].text;
    EXPECT_EQ(outcome_of([&] { comm.check(); }).text, text);
    EXPECT_EQ(outcome_of([&] { comm.barrier(); }).text, text);
  }
}

}  // namespace
}  // namespace treering::test
