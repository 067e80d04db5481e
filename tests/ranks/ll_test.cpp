// What only LL wires have: numbers that wrap, elements that outlive their message, sizes in headers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/access.hpp"
#include "plan/choice.hpp"
#include "plan/chunks.hpp"
#include "plan/ll_slots.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

constexpr std::uint64_t wrap = std::uint64_t{1} << 32, round = std::uint64_t{1} << 30;

/// Every wire goes on as if as many messages had been sent on it.
void jump(Team& team, std::uint64_t messages) {
  for (int r = 0; r < team.size(); ++r) {
    Membership& seat = membership(team[r]);
    for (int c = 0; c < seat.channels(); ++c)
      for (int p = 0; p < team.size(); ++p) {
        LlEdge& edge = seat.ll_edge(c, p);
        edge.sent = edge.received = edge.to.credit->value = messages;
      }
  }
}

/// One call over LL whose messages, one on each wire, have as many elements; others each time.
void call(Team& team, std::size_t count, std::uint64_t seed,
          Collective collective = Collective::all_gather) {
  check(team, {.pattern = {collective, DataType::i32, ReduceOp::sum, team.size(), count, seed},
               .algorithm = algorithms_of(collective).front(),
               .wire = WireType::ll});
}

TEST(LlWire, NumbersWrap) {
  Team team(3);
  for (const std::uint64_t before :
       {wrap - round - 4, wrap - 4, 2 * wrap - round - 4, 2 * wrap - 4}) {
    jump(team, before);
    for (std::uint64_t i = 0; i < 40; ++i)
      for (const Collective collective : {Collective::all_reduce, Collective::all_gather})
        call(team, i % 3 == 0 ? 3000 : i, before + i, collective);
  }
}

/// A long message's last elements stay where they are while short ones come; 2³² messages later their
/// flags are right again.
TEST(LlWire, OldElementsAreNotTakenForNew) {
  Team team(2);
  const std::size_t most =
      ll_capacity(membership(team[0]).shape()) / sizeof(std::int32_t) / cut_grain * cut_grain;
  const std::uint64_t slots = membership(team[0]).shape().slots;
  std::uint64_t seed = 1;
  jump(team, 1000);
  for (std::uint64_t i = 0; i < slots; ++i) call(team, most, seed++);
  for (const std::uint64_t later : {round, 2 * round, 3 * round, wrap}) {  // as time would go by
    jump(team, later - 1);
    for (std::uint64_t i = 0; i <= slots; ++i) call(team, 1, seed++);
  }
  jump(team, wrap + 1000);
  for (std::uint64_t i = 0; i < slots; ++i) call(team, most, seed++);
}

TEST(LlWire, LastCallSaysSo) {
  Team team(2);
  call(team, 5, 1);
  EXPECT_EQ(team[0].last_call().wire, WireType::ll);
  EXPECT_FALSE(team[0].last_call().direct);
  check(team, {.pattern = {Collective::barrier, DataType::u8, ReduceOp::sum, 2, 0, 1}});
  EXPECT_EQ(team[0].last_call().wire, WireType::simple);
}

/// A communicator's wire counts where it can: barriers have their own.
TEST(LlWire, IsAnOptionOfTheCommunicator) {
  Team team(2, {.wire = WireType::ll});
  const Pattern sum{Collective::all_reduce, DataType::i32, ReduceOp::sum, 2, 100, 1};
  check(team, {.pattern = sum});
  EXPECT_EQ(team[1].last_call().wire, WireType::ll);
  check(team, {.pattern = sum, .wire = WireType::simple});
  EXPECT_EQ(team[1].last_call().wire, WireType::simple);
  check(team, {.pattern = {Collective::barrier, DataType::u8, ReduceOp::sum, 2, 0, 1}});
}

/// What nobody else knows is compared when it comes, as it is by simple wires.
TEST(LlWireMismatch, OfUnevenParts) {
  std::vector<Communicator> comms = Communicator::create_local(3);
  const auto outcomes = on_threads(3, [&](int rank) {
    std::vector<float> in(3 * 4096), out(3 * 4096);
    std::vector<std::size_t> sent(3, 4096), received(3, 4096);
    if (rank == 1) sent[2] = 0;
    comms[static_cast<std::size_t>(rank)].all_to_all_v(in.data(), {sent}, out.data(), {received},
                                                       DataType::f32, {.wire = WireType::ll});
  });
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text,
                testing::HasSubstr("rank 1 sends 0 elements of f32 to rank 2, which expects 4096"));
  }
}

}  // namespace
}  // namespace treering::test
