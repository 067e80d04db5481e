// Deterministic mode: the bits of every reduction are those of a fold in rank order in the accumulator, rounded once,
// whichever algorithm distributes it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "kernels/ops/elements.hpp"
#include "perf/call.hpp"
#include "plan/choice.hpp"
#include "tests/ranks/guarded.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr DataType floats[] = {DataType::f8e4m3, DataType::f8e5m2, DataType::f16,
                               DataType::bf16,   DataType::f32,    DataType::f64};
constexpr ReduceOp operators[] = {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod,
                                  ReduceOp::premul_sum};
constexpr Collective reductions[] = {Collective::all_reduce, Collective::reduce_scatter,
                                     Collective::reduce_scatter_v, Collective::reduce};

/// Calls f with the element type of a floating-point type.
template <class F>
void with_element(DataType type, F f) {
  with_reduction(type, ReduceOp::sum, [&]<class Element, class Op>(Element element, Op) {
    if constexpr (std::is_floating_point_v<typename Element::Accumulator>) f(element);
  });
}

template <class Element>
using StoredVector = std::vector<typename Element::Stored>;

/// Element `i` of all ranks, folded one after the other.
template <class Element>
typename Element::Stored fold(const Pattern& p, const std::vector<StoredVector<Element>>& inputs,
                              std::size_t i) {
  using Accumulator = typename Element::Accumulator;
  Accumulator all = 0;
  for (int r = 0; r < p.ranks; ++r) {
    auto own = Element::widen(inputs[static_cast<std::size_t>(r)][i]);
    if (p.op == ReduceOp::premul_sum)  // what is contributed is of the type
      own = Element::widen(Element::narrow(static_cast<Accumulator>(pattern_scale(p, r)) * own));
    if (r == 0)
      all = own;
    else
      all = p.op == ReduceOp::prod ? all * own : all + own;
  }
  return Element::narrow(p.op == ReduceOp::avg ? all / static_cast<Accumulator>(p.ranks) : all);
}

/// Where a rank's result lies in the array that all contribute to.
std::size_t result_begin(const Pattern& p, int rank) {
  if (even(p.collective) != Collective::reduce_scatter) return 0;
  const auto counts = sent_counts(p, rank);
  return std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0});
}

class Deterministic : public testing::TestWithParam<int> {
 protected:
  template <class Element>
  std::vector<StoredVector<Element>> random_inputs(const Pattern& p) {
    using Accumulator = typename Element::Accumulator;
    std::uniform_real_distribution<Accumulator> numbers(-2, 2);
    std::vector<StoredVector<Element>> inputs;
    for (int r = 0; r < p.ranks; ++r)
      for (auto& x : inputs.emplace_back(input_elements(p, r)))
        x = Element::narrow(numbers(random_));
    return inputs;
  }

  template <class Element>
  void expect_fold_in_rank_order(const Pattern& p, std::optional<Algorithm> algorithm,
                                 bool registered) {
    const Case one{.pattern = p, .algorithm = algorithm, .registered = registered};
    SCOPED_TRACE(one.text());
    constexpr std::size_t width = sizeof(typename Element::Stored);
    const auto inputs = random_inputs<Element>(p);
    std::vector<Guarded> in, out;
    for (int r = 0; r < p.ranks; ++r) {
      const auto& mine = inputs[static_cast<std::size_t>(r)];
      in.emplace_back(mine.size() * width, registered);
      std::memcpy(in.back().data(), mine.data(), mine.size() * width);
      out.emplace_back(output_elements(p, r) * width, registered);
    }
    team_.each([&](Communicator& comm, CallOptions how) {
      how.algorithm = algorithm;
      const auto r = static_cast<std::size_t>(comm.rank());
      make_call(comm, p, in[r].data(), out[r].data(), how);
    });
    for (int r = 0; r < p.ranks; ++r) {
      StoredVector<Element> expected(output_elements(p, r));
      for (std::size_t i = 0; i < expected.size(); ++i)
        expected[i] = fold<Element>(p, inputs, result_begin(p, r) + i);
      if (expected.empty()) continue;
      EXPECT_EQ(std::memcmp(out[static_cast<std::size_t>(r)].data(), expected.data(),
                            expected.size() * width),
                0)
          << "rank " << r;
    }
  }

  Team team_{GetParam(), {.deterministic = true}};
  std::mt19937_64 random_{20262};
};

TEST_P(Deterministic, BitsAreThoseOfAFoldInRankOrder) {
  for (const Collective collective : reductions)
    for (const DataType type : floats)
      for (const ReduceOp op : operators) {
        const Pattern p{collective, type, op, GetParam(), 257, 3, GetParam() / 2};
        std::vector<std::optional<Algorithm>> algorithms{std::nullopt};
        for (const Algorithm a : algorithms_of(collective))
          if (folds_at_once(collective, a)) algorithms.emplace_back(a);
        for (const auto& algorithm : algorithms)
          for (const bool registered : {false, true})
            with_element(type, [&]<class Element>(Element) {
              expect_fold_in_rank_order<Element>(p, algorithm, registered);
            });
      }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Deterministic, testing::Values(2, 3, 5, 8));

/// What is forced and would add on the way is refused, and named with what may be used instead.
void expect_refusals(Communicator& comm, bool forced_by_call) {
  std::vector<float> in(8 * static_cast<std::size_t>(comm.size())), out(in);
  for (const Collective collective : reductions)
    for (const Algorithm algorithm : algorithms_of(collective)) {
      if (folds_at_once(collective, algorithm)) continue;
      if (!forced_by_call && algorithm != Algorithm::ring) continue;
      const Pattern p{collective, DataType::f32, ReduceOp::sum, comm.size(), 4, 1};
      CallOptions how;
      if (forced_by_call) how.algorithm = algorithm;
      const Outcome o = outcome_of([&] { make_call(comm, p, in.data(), out.data(), how); });
      EXPECT_EQ(o.code, ErrorCode::unsupported) << testing::PrintToString(o);
      EXPECT_THAT(
          o.text,
          AllOf(HasSubstr(fmt::format("algorithm {} adds on the way, which "
                                      "deterministic {} may not; there are: ",
                                      name(algorithm), name(collective))),
                HasSubstr(collective == Collective::all_reduce ? "two_shot, one_shot" : "direct")));
    }
}

TEST(DeterministicMode, RefusesWhatAddsOnTheWay) {
  Team team(3, {.deterministic = true});
  for (int r = 0; r < 3; ++r) expect_refusals(team[r], true);
  Team by_ring(3, {.algorithm = Algorithm::ring, .deterministic = true});
  for (int r = 0; r < 3; ++r) expect_refusals(by_ring[r], false);
  // What adds nothing may go round the ring; and refused calls had no number.
  for (Team* usable : {&team, &by_ring}) {
    check(*usable, {.pattern = {Collective::all_gather, DataType::f32, ReduceOp::sum, 3, 1000, 1},
                    .algorithm = Algorithm::ring});
    check(*usable, {.pattern = {Collective::all_reduce, DataType::f32, ReduceOp::sum, 3, 1000, 1},
                    .algorithm = Algorithm::two_shot});
  }
}

const RegisterProgram tries_ring("tries ring", [](const RankProcess& self) {
  Communicator comm = self.join();
  std::vector<float> data(8);
  self.say(outcome_of([&] {
             comm.all_reduce(data.data(), data.data(), 8, DataType::f32, ReduceOp::sum,
                             {.algorithm = Algorithm::ring});
           }).line());
  self.say(checked_call(comm, {.pattern = {Collective::all_reduce, DataType::f16, ReduceOp::avg,
                                           self.size, 999, 1}}));
});

TEST(DeterministicMode, IsAskedForByTheEnvironment) {
  for (const bool set : {false, true}) {
    Job job("tries ring", 2, {.environment = {fmt::format("TREERING_DETERMINISTIC={:d}", set)}});
    for (const Outcome& o : job.hear_outcomes()) {
      EXPECT_EQ(o.ok(), !set);
      EXPECT_TRUE(!set || o.code == ErrorCode::unsupported) << testing::PrintToString(o);
    }
    job.expect_all("");
  }
}

TEST(DeterministicMode, MustBeTheSameOnAllRanks) {
  const UniqueId id = UniqueId::create();
  for (const Outcome& o : on_threads(
           3, [&](int rank) { Communicator::create(id, 3, rank, {.deterministic = rank == 1}); })) {
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text, AllOf(HasSubstr("rank 1"), HasSubstr("TREERING_DETERMINISTIC")));
    EXPECT_THAT(o.ranks, testing::ElementsAre(1));
  }
}

}  // namespace
}  // namespace treering::test
