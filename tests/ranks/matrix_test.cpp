// Every collective × algorithm × wire × type × operator × awkward size × number of ranks × placement,
// exactly. Wires do not look at types and operators, so LL is not crossed with these.

#include <gtest/gtest.h>

#include <random>

#include "plan/choice.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

constexpr DataType types[] = {DataType::u8,      DataType::i8,     DataType::u16,    DataType::i16,
                              DataType::u32,     DataType::i32,    DataType::u64,    DataType::i64,
                              DataType::boolean, DataType::f8e4m3, DataType::f8e5m2, DataType::f16,
                              DataType::bf16,    DataType::f32,    DataType::f64};
constexpr ReduceOp operators[] = {ReduceOp::sum,     ReduceOp::prod,   ReduceOp::min,
                                  ReduceOp::max,     ReduceOp::avg,    ReduceOp::premul_sum,
                                  ReduceOp::bit_and, ReduceOp::bit_or, ReduceOp::bit_xor};

/// Every collective that moves data.
std::vector<Collective> movers_and_reducers() {
  std::vector<Collective> all;
  for (int i = 0; i < collectives; ++i)
    if (const auto c = static_cast<Collective>(i); c != Collective::barrier) all.push_back(c);
  return all;
}

class Matrix : public testing::TestWithParam<int> {};

/// All placements of one call.
void check_placements(Team& team, Case one) {
  for (const bool in_place : {false, true})
    for (const bool registered : {false, true}) {
      if (registered && one.wire == WireType::ll) continue;  // which is never direct
      one.in_place = one.pattern.symmetric = in_place;
      one.registered = registered;
      check(team, one);
    }
}

void check_algorithms(Team& team, const Pattern& pattern, std::size_t offset,
                      WireType wire = WireType::simple) {
  for (const Algorithm algorithm : algorithms_of(pattern.collective))
    check_placements(team,
                     {.pattern = pattern, .algorithm = algorithm, .wire = wire, .offset = offset});
}

/// The wire for buffers that lie at this offset: LL reads and writes none itself, so one is enough for it.
constexpr std::pair<std::size_t, WireType> offsets_and_wires[] = {
    {0, WireType::simple}, {1, WireType::simple}, {1, WireType::ll}};

TEST_P(Matrix, AwkwardSizes) {
  Team team(GetParam());
  std::uint64_t seed = 1;
  for (const Collective collective : movers_and_reducers())
    for (const std::size_t count : {0, 1, 3, 7, 64, 65, 1000, 4099})
      for (const auto& [offset, wire] : offsets_and_wires)
        check_algorithms(team,
                         {.collective = collective,
                          .type = DataType::f32,
                          .op = ReduceOp::sum,
                          .ranks = team.size(),
                          .count = count,
                          .seed = seed++,
                          .root = static_cast<int>(seed) % team.size()},
                         offset, wire);
}

TEST_P(Matrix, TypesAndOperators) {
  Team team(GetParam());
  std::uint64_t seed = 100;
  for (const DataType type : types)
    for (const Collective collective : movers_and_reducers())
      for (const ReduceOp op : operators) {
        if (!applies(op, type) || (!reduces(collective) && op != ReduceOp::sum)) continue;
        check_algorithms(team, {collective, type, op, team.size(), 131, seed++}, 1);
      }
}

/// Sums that must be rounded: all ranks get the same bits, and those that fold all ranks at once get the
/// bits of a sum in rank order.
TEST_P(Matrix, RoundedSumsHaveTheSameBits) {
  Team team(GetParam());
  const auto n = static_cast<std::size_t>(team.size());
  constexpr std::size_t count = 1001;
  std::mt19937 random(7);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<std::vector<float>> in(n, std::vector<float>(count)), out(n, in[0]);
  for (auto& rank : in)
    for (float& x : rank) x = numbers(random);
  std::vector<float> in_rank_order = in[0];
  for (std::size_t r = 1; r < n; ++r)
    for (std::size_t i = 0; i < count; ++i) in_rank_order[i] += in[r][i];

  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    SCOPED_TRACE(name(algorithm));
    team.each([&](Communicator& comm, CallOptions how) {
      how.algorithm = algorithm;
      const auto r = static_cast<std::size_t>(comm.rank());
      comm.all_reduce(in[r].data(), out[r].data(), count, DataType::f32, ReduceOp::sum, how);
    });
    for (std::size_t r = 1; r < n; ++r) EXPECT_EQ(out[r], out[0]) << "rank " << r;
    if (folds_at_once(Collective::all_reduce, algorithm)) {
      EXPECT_EQ(out[0], in_rank_order);
    }
  }
}

/// Several messages a wire, so that slots and credits go round.
TEST_P(Matrix, ManySlots) {
  Team team(GetParam());
  const std::size_t count = 400'009 / static_cast<std::size_t>(team.size());
  for (const Collective collective : movers_and_reducers())
    for (const WireType wire : {WireType::simple, WireType::ll})
      check_algorithms(team, {collective, DataType::bf16, ReduceOp::max, team.size(), count, 7}, 0,
                       wire);
}

TEST_P(Matrix, BarriersBetweenCalls) {
  Team team(GetParam());
  for (int i = 0; i < 50; ++i) {
    check(team, {.pattern = {Collective::barrier, DataType::u8, ReduceOp::sum, team.size(), 0, 1}});
    check(team, {.pattern = {Collective::all_reduce, DataType::i32, ReduceOp::sum, team.size(), 5,
                             static_cast<std::uint64_t>(i)}});
  }
}

/// Calls of all kinds in random order, one after the other on the same wires.
TEST_P(Matrix, RandomSequence) {
  Team team(GetParam());
  const std::uint64_t seed = 20260;
  SCOPED_TRACE(testing::Message() << "seed of the sequence: " << seed);
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(GetParam()));
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  for (int i = 0; i < 200; ++i) {
    const DataType type = pick(types);
    const ReduceOp op = pick(operators);
    Case one{.pattern = {pick(movers_and_reducers()), type, applies(op, type) ? op : ReduceOp::max,
                         team.size(), random() % 3000, random()}};
    const Collective collective = one.pattern.collective;
    one.pattern.root = static_cast<int>(random() % static_cast<unsigned>(team.size()));
    if (random() % 3 != 0) one.algorithm = pick(algorithms_of(collective));
    if (random() % 3 == 0) one.wire = WireType::ll;
    one.in_place = one.pattern.symmetric = random() % 2 != 0;
    one.registered = random() % 2 != 0;
    one.offset = random() % 3;
    check(team, one);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Matrix, testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

}  // namespace
}  // namespace treering::test
