// Ranks that call different things: every rank gets the same error, which shows both calls.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <thread>

#include "base/rank_list.hpp"
#include "collectives/access.hpp"
#include "collectives/arguments.hpp"
#include "kernels/exec/device.hpp"
#include "perf/call.hpp"
#include "tests/ranks/boards.hpp"
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
constexpr std::size_t small = 5, medium = 1024, large = 300'007;

/// What one rank calls.
struct Called {
  Collective collective;
  std::size_t count = medium;
  DataType type = f32;
  ReduceOp op = sum;
  std::optional<Algorithm> algorithm = {};
  int root = 0;
  /// With uneven parts, which are of `count` elements: so much more for the first and less for the second rank; or
  /// more for the next rank, if this one alone knows.
  std::ptrdiff_t shift = 0;
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
constexpr auto all_gather_v = Collective::all_gather_v;
constexpr auto reduce_scatter_v = Collective::reduce_scatter_v;
constexpr auto all_to_all_v = Collective::all_to_all_v;
constexpr auto broadcast = Collective::broadcast;
constexpr auto reduce = Collective::reduce;
constexpr auto gather = Collective::gather;
constexpr auto scatter = Collective::scatter;
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
      {{.collective = all_reduce,
        .count = small,
        .algorithm = Algorithm::one_shot,
        .wire = WireType::ll},
       {.collective = all_reduce,
        .count = small,
        .algorithm = Algorithm::one_shot,
        .wire = WireType::simple}},
      {{.collective = all_gather,
        .count = large,
        .algorithm = Algorithm::ring,
        .wire = WireType::simple},
       {.collective = all_gather,
        .count = large,
        .algorithm = Algorithm::ring,
        .wire = WireType::ll}},
      // over LL
      {{.collective = all_reduce,
        .count = small,
        .algorithm = Algorithm::one_shot,
        .wire = WireType::ll},
       {.collective = all_reduce,
        .count = small + 1,
        .algorithm = Algorithm::one_shot,
        .wire = WireType::ll}},
      {{.collective = all_reduce,
        .count = large,
        .algorithm = Algorithm::two_shot,
        .wire = WireType::ll},
       {.collective = all_gather,
        .count = medium,
        .algorithm = Algorithm::direct,
        .wire = WireType::ll}},
      {{.collective = all_to_all,
        .count = medium,
        .algorithm = Algorithm::direct,
        .wire = WireType::ll},
       {barrier, 0, DataType::u8}},
      // the same algorithm in another operation
      {{all_reduce, medium, f32, sum, Algorithm::ring},
       {all_gather, medium, f32, sum, Algorithm::ring}},
      {{reduce_scatter, large, f32, sum, Algorithm::ring},
       {all_gather, large, f32, sum, Algorithm::ring}},
      // another root
      {{.collective = broadcast, .root = 0}, {.collective = broadcast, .root = 1}},
      {{.collective = broadcast, .count = large, .root = 1}, {broadcast, large}},
      {{.collective = reduce, .root = 1}, {reduce}},
      {{reduce, small}, {.collective = reduce, .count = small, .root = 1}},
      {{gather}, {.collective = gather, .root = 1}},
      {{.collective = scatter, .root = 1}, {scatter}},
      {{broadcast, large, f32, sum, Algorithm::ring},
       {broadcast, large, f32, sum, Algorithm::ring, 1}},
      {{reduce, large, f32, sum, Algorithm::tree, 1}, {reduce, large, f32, sum, Algorithm::tree}},
      // with a root against without, and against another
      {{all_reduce}, {reduce}},
      {{.collective = reduce, .count = large, .root = 1}, {all_reduce, large}},
      {{reduce}, {reduce_scatter}},
      {{all_gather, small}, {.collective = gather, .count = small, .root = 1}},
      {{gather, large}, {all_gather, large}},
      {{all_to_all}, {scatter}},
      {{scatter, large}, {all_to_all, large}},
      {{all_reduce, small}, {broadcast, small}},
      {{.collective = broadcast, .root = 1}, {barrier, 0, DataType::u8}},
      {{barrier, 0, DataType::u8}, {.collective = broadcast, .count = small, .root = 1}},
      {{barrier, 0, DataType::u8}, {gather}},
      {{.collective = broadcast, .root = 1}, {scatter}},
      {{reduce}, {gather}},
      {{gather}, {scatter}},
      // with a root: another count, type, operator, algorithm
      {{broadcast, 5}, {broadcast, 6}},
      {{.collective = scatter, .count = large, .root = 1},
       {.collective = scatter, .count = large + 1, .root = 1}},
      {{gather, medium, f32}, {gather, medium, DataType::i32}},
      {{reduce, medium, f32, sum}, {reduce, medium, f32, ReduceOp::max}},
      {{broadcast, large, f32, sum, Algorithm::tree},
       {broadcast, large, f32, sum, Algorithm::direct}},
      {{reduce, medium, f32, sum, Algorithm::direct}, {reduce, medium, f32, sum, Algorithm::ring}},
      // other parts
      {{all_gather_v}, {.collective = all_gather_v, .shift = 1}},
      {{.collective = all_gather_v, .count = large, .shift = 7}, {all_gather_v, large}},
      {{reduce_scatter_v}, {.collective = reduce_scatter_v, .shift = -5}},
      {{all_gather_v, small, f32, sum, Algorithm::ring},
       {all_gather_v, small, f32, sum, Algorithm::ring, 0, -5}},
      {{reduce_scatter_v, large, f32, sum, Algorithm::ring},
       {reduce_scatter_v, large, f32, sum, Algorithm::ring, 0, 1}},
      {{all_gather}, {all_gather_v}},
      {{reduce_scatter_v, large}, {reduce_scatter, large}},
      {{all_to_all}, {all_to_all_v}},
      {{all_to_all_v, medium, f32}, {all_to_all_v, medium, DataType::u32}},
      // what one rank sends is not what another expects
      {{all_to_all_v}, {.collective = all_to_all_v, .shift = 3}},
      {{all_to_all_v, small}, {.collective = all_to_all_v, .count = small, .shift = -1}},
      {{all_to_all_v, small}, {.collective = all_to_all_v, .count = small, .shift = -5}},
      {{all_to_all_v, 0}, {.collective = all_to_all_v, .count = 0, .shift = 1}},
      {{all_to_all_v, large}, {.collective = all_to_all_v, .count = large, .shift = 1}},
      {{all_to_all_v, large}, {.collective = all_to_all_v, .count = large, .shift = -300'000}},
  };
  return all;
}

/// One mismatch among `size` ranks: who is odd depends on its number, and so does the rest.
struct Scene {
  std::size_t number;
  int size;

  const Kind& kind() const { return kinds()[number]; }
  /// All call the same, but do not agree on what one sends to the next.
  bool sizes_only() const {
    return kind().usual.collective == all_to_all_v && kind().odd.shift != 0;
  }
  bool two_camps() const { return number % 4 == 3 && !sizes_only(); }
  bool is_odd(int rank) const {
    return two_camps() ? rank % 2 == 1 : rank == static_cast<int>(number) % size;
  }
  const Called& called_by(int rank) const { return is_odd(rank) ? kind().odd : kind().usual; }
  /// The rank may owe no wait in its call: one with a root, or of sizes that two others do not agree on.
  bool may_pass(int rank) const { return has_root(called_by(rank).collective) || sizes_only(); }
  bool registered() const { return number % 2 == 0; }
  int barriers_before() const { return static_cast<int>(number % 3) * 8; }

  std::vector<int> ranks(bool odd) const {
    std::vector<int> all;
    for (int r = 0; r < size; ++r)
      if (is_odd(r) == odd) all.push_back(r);
    return all;
  }
};

/// The parts that a rank sends, or that all ranks have in mind.
std::vector<std::size_t> parts(const Called& call, int size, int rank) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(size), call.count);
  const auto shift = static_cast<std::size_t>(call.shift);  // wraps, and so may take away
  if (call.collective == all_to_all_v) {
    counts[static_cast<std::size_t>((rank + 1) % size)] += shift;
  } else {
    counts[0] += shift;
    counts[1] -= shift;
  }
  return counts;
}

/// As reports show a call; without its end, where the plan may follow.
std::string begin_of(const Called& call, int size) {
  if (call.collective == barrier) return "barrier(";
  const bool known_parts = call.collective == all_gather_v || call.collective == reduce_scatter_v;
  std::string text = fmt::format("{}({}", name(call.collective), name(call.type));
  if (known_parts)
    text += fmt::format(" × {} in parts #{:08x}", call.count * static_cast<std::size_t>(size),
                        hash_of({parts(call, size, 0)}));
  else if (call.collective != all_to_all_v)
    text += fmt::format(" × {}", call.count);
  if (reduces(call.collective)) text += fmt::format(", {}", name(call.op));
  if (has_root(call.collective)) text += fmt::format(", root {}", call.root);
  return text;
}

/// The likely culprits: the smaller camp, or those who do not agree on a size.
std::vector<int> expected_ranks(const Scene& scene) {
  const auto odd = scene.ranks(true), usual = scene.ranks(false);
  if (scene.sizes_only()) return {odd[0], (odd[0] + 1) % scene.size};
  return odd.size() < usual.size() || (odd.size() == usual.size() && scene.is_odd(0)) ? odd : usual;
}

/// How the error begins; for calls that differ in their algorithm only, it goes on with that.
std::string expected_text(const Scene& scene) {
  const std::vector<int> first = expected_ranks(scene);
  const std::string begin = fmt::format("call {}: ", scene.barriers_before() + 1);
  if (scene.sizes_only()) {
    const Called& odd = scene.kind().odd;
    return begin +
           fmt::format(
               "all_to_all_v: rank {} sends {} elements of {} to rank {}, which expects {}.",
               first[0], odd.count + static_cast<std::size_t>(odd.shift), name(odd.type), first[1],
               odd.count);
  }
  const bool odd_first = scene.is_odd(first[0]);
  const Called& call = odd_first ? scene.kind().odd : scene.kind().usual;
  const Called& other = odd_first ? scene.kind().usual : scene.kind().odd;
  const std::string text = begin_of(call, scene.size), other_text = begin_of(other, scene.size);
  const std::string who = begin + rank_list(first) + " called " + text;
  if (text == other_text) return who + fmt::format(", by {}", name(*call.algorithm));
  return who + fmt::format("), {} called {}).", rank_list(scene.ranks(!odd_first)), other_text);
}

Pattern pattern(const Called& call, int size) {
  return {call.collective, call.type, call.op, size, call.count, 1, call.root};
}

void make(Communicator& comm, const Called& call, const void* in, void* out, CallOptions how) {
  how.algorithm = call.algorithm;
  how.wire = call.wire;
  const auto counts = parts(call, comm.size(), comm.rank());
  const std::vector<std::size_t> expected(counts.size(), call.count);
  switch (call.collective) {
    case all_gather_v:
      return comm.all_gather_v(in, out, {counts}, call.type, how);
    case reduce_scatter_v:
      return comm.reduce_scatter_v(in, out, {counts}, call.type, call.op, how);
    case all_to_all_v:
      return comm.all_to_all_v(in, {counts}, out, {expected}, call.type, how);
    default:
      return make_call(comm, pattern(call, comm.size()), in, out, how);
  }
}

/// A rank's buffers for a call that will fail.
struct Buffers {
  Buffers(const Called& call, int size, bool registered)
      : Buffers(largest(call, size) * size_of(call.type), registered) {}
  Buffers(std::size_t bytes, bool registered)
      : input(bytes, registered), output(bytes, registered) {}

  static std::size_t largest(const Called& call, int size) {
    Called even_call = call;
    even_call.collective = even(call.collective);
    even_call.count += static_cast<std::size_t>(std::abs(call.shift));
    return most_elements(pattern(even_call, size));
  }

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
  other.barrier();  // the buffers took a while, and who is half a second late is reported as late
  for (int i = 0; i < scene.barriers_before(); ++i) comm.barrier();
  Part part;
  part.outcome = outcome_of([&] {
    make(comm, mine, buffers.input.data(), buffers.output.data(), {});
    // See hear_in_next_calls().
    for (int i = 0; i < 2 && scene.may_pass(rank); ++i) comm.barrier();
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

/// Who owes no wait in a call has its error later: at the latest in the second call that all must have begun, since
/// whoever found the mismatch in the first does not begin it.
void hear_in_next_calls(const Scene& scene, Team& team, std::vector<Outcome>& outcomes) {
  for (int i = 0; i < 2; ++i) {
    const auto next = team.try_each([&](Communicator& comm, const CallOptions& how) {
      if (outcomes[static_cast<std::size_t>(comm.rank())].ok()) comm.barrier(how);
    });
    for (int rank = 0; rank < team.size(); ++rank) {
      Outcome& mine = outcomes[static_cast<std::size_t>(rank)];
      if (!mine.ok()) continue;
      EXPECT_TRUE(scene.may_pass(rank)) << "rank " << rank;
      mine = next[static_cast<std::size_t>(rank)];
    }
  }
}

std::string title(const Scene& scene) {
  return fmt::format("scene {}: {} ranks, {}) against {})", scene.number, scene.size,
                     begin_of(scene.kind().usual, scene.size),
                     begin_of(scene.kind().odd, scene.size));
}

class Mismatch : public testing::TestWithParam<int> {
 public:
  static void SetUpTestSuite() {
    ASSERT_GE(kinds().size(), 90u);
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
    auto outcomes = team.try_each([&](Communicator& comm, const CallOptions& how) {
      Buffers& mine = buffers[static_cast<std::size_t>(comm.rank())];
      make(comm, scene.called_by(comm.rank()), mine.input.data(), mine.output.data(), how);
    });
    hear_in_next_calls(scene, team, outcomes);
    check_outcomes(scene, outcomes);
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

/// A root that has sent all that it owes returns, whatever the others call.
TEST(MismatchInTheNextCall, ReachesARootThatOwedNoWait) {
  std::vector<Communicator> comms = Communicator::create_local(3);
  std::vector<float> in(64);
  comms[0].broadcast(in.data(), in.data(), 64, f32, 0);
  const auto outcomes = on_threads(2, [&](int i) {
    std::vector<float> out(64);
    Communicator& comm = comms[static_cast<std::size_t>(i) + 1];
    if (i == 0) return comm.all_reduce(in.data(), out.data(), 64, f32, sum);
    comm.broadcast(nullptr, out.data(), 64, f32, 0);
    comm.barrier();
  });
  const Outcome root = outcome_of([&] { comms[0].barrier(); });
  EXPECT_THAT(root.text, StartsWith("call 1: rank 1 called all_reduce(f32 × 64, sum), ranks 0, 2 "
                                    "called broadcast(f32 × 64, root 0)."));
  for (const Outcome& o : outcomes) EXPECT_EQ(o.text, root.text);
}

/// Each is its own root, so that both have long gone on.
TEST(MismatchInTheNextCall, NamesTheCallWhereItBegan) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<float> data(64);
  for (int rank = 0; rank < 2; ++rank)
    comms[static_cast<std::size_t>(rank)].broadcast(data.data(), data.data(), 64, f32, rank);
  for (const Outcome& o :
       on_threads(2, [&](int rank) { comms[static_cast<std::size_t>(rank)].barrier(); }))
    EXPECT_THAT(o.text, StartsWith("call 1: rank 0 called broadcast(f32 × 64, root 0), rank 1 "
                                   "called broadcast(f32 × 64, root 1)."));
}

/// Messages that nobody expects fill all slots; then both wait for a slot, in a call that is the same.
TEST(MismatchInTheNextCall, IsFoundWhereAllSlotsAreFull) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  std::vector<float> data(1);
  const int slots = static_cast<int>(membership(comms[0]).shape().slots);
  for (int rank = 0; rank < 2; ++rank)
    for (int i = 0; i < slots; ++i)
      comms[static_cast<std::size_t>(rank)].broadcast(data.data(), data.data(), 1, f32, rank,
                                                      {.algorithm = Algorithm::ring});
  const int shown =
      std::max(1, slots + 2 - board_entries);  // the earliest call that boards still show
  for (const Outcome& o :
       on_threads(2, [&](int rank) { comms[static_cast<std::size_t>(rank)].barrier(); }))
    EXPECT_THAT(o.text, StartsWith(fmt::format("call {}: rank 0 called broadcast(f32 × 1, root 0), "
                                               "rank 1 called broadcast(f32 × 1, root 1).",
                                               shown)));
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

/// Rank 0 needs no slot for its short messages, so it has begun as many calls as there are posts, and one more.
TEST(MismatchOfLateRanks, IsOfTheirCallHoweverFarTheOthersAre) {
  std::vector<Communicator> comms = Communicator::create_local(2);
  const std::uint64_t posts = membership(comms[0]).shape().slots;
  const auto outcomes = on_threads(2, [&](int rank) {
    std::vector<float> in(1), out(2);
    if (rank == 0)
      for (;;) comms[0].broadcast(in.data(), in.data(), 1, f32, 0);
    while (!has_begun(comms[0], posts + 1)) std::this_thread::yield();
    comms[1].all_gather(in.data(), out.data(), 1, f32);
  });
  for (const Outcome& o : outcomes)
    EXPECT_THAT(o.text,
                StartsWith("call 1: rank 0 called broadcast(f32 × 1, root 0), rank 1 called "
                           "all_gather(f32 × 1)."));
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
