// Counters that can wrap do so here; docs/testing.md lists all counters, and why the others cannot.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/access.hpp"
#include "tests/ranks/cases.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::StartsWith;

/// As if so many calls had been made, and so many messages sent on every wire.
void pretend(Team& team, std::uint64_t calls, std::uint64_t messages) {
  for (int rank = 0; rank < team.size(); ++rank) {
    Membership& seat = membership(team[rank]);
    for (int channel = 0; channel < seat.channels(); ++channel) {
      seat.view()->sequence[channel] = calls;
      for (int peer = 0; peer < team.size(); ++peer) {
        Edge& edge = seat.edge(channel, peer);
        edge.sent = edge.received = messages;
        edge.to.credit->value = messages;
      }
    }
  }
}

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;

class Wrap : public testing::TestWithParam<std::uint64_t> {};

/// Call words have 32 bits of a call's number; messages are counted in 64 bits, slots modulo their number.
TEST_P(Wrap, CallsAreExactAcrossIt) {
  constexpr int size = 3;
  Team team(size);
  pretend(team, GetParam() - 100, GetParam() - 100);
  const CallSpace calls({size}, 1000);
  const auto rows = pairwise_covering(calls.space(), 1);
  ASSERT_GT(rows.size(), 200u);  // messages wrap sooner
  for (std::size_t i = 0; i < 200; ++i) check(team, calls.case_of(rows[i], i));
  EXPECT_GT(*membership(team[0]).view()->sequence, GetParam());
}

/// Ranks that call different things are found out before, at and behind it, with one text for all.
TEST_P(Wrap, MismatchesAreFoundAcrossIt) {
  for (const std::uint64_t before : {2, 1, 0}) {
    Team team(3);
    pretend(team, GetParam() - before - 3, GetParam() - 7);
    for (int i = 0; i < 2; ++i)
      team.each([](Communicator& comm, const CallOptions& how) { comm.barrier(how); });
    std::vector<float> in(300), out(900);
    const auto outcomes = team.try_each([&](Communicator& comm, const CallOptions& how) {
      if (comm.rank() == 1) return comm.barrier(how);
      comm.all_gather(in.data(), comm.rank() == 0 ? out.data() : out.data() + 300, 100,
                      DataType::f32, how);
    });
    for (const Outcome& o : outcomes)
      EXPECT_THAT(o.text, StartsWith(fmt::format(
                              "call {}: rank 1 called barrier(), ranks 0, 2 called all_gather(f32 "
                              "× 100).",
                              (GetParam() - before) % two_to_32)));
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Wrap,
                         testing::Values(std::uint64_t{1} << 31, two_to_32,
                                         std::uint64_t{1} << 63));

/// Tables of uneven parts, of which there are 16, are used again while calls are still queued.
TEST(WrapOfPartTables, ManyQueuedCallsKeepTheirParts) {
  constexpr int size = 3;
  Team team(size);
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<Stream> streams(size);
  for (std::uint64_t i = 0; i < 50; ++i)
    for (int rank = 0; rank < size; ++rank) {
      const Collective collectives[] = {Collective::all_to_all_v, Collective::all_gather_v,
                                        Collective::reduce_scatter_v};
      sides.push_back(std::make_unique<Side>(
          Case{.pattern = {collectives[i % 3], DataType::i32, ReduceOp::sum, size, 100 + i, i}},
          rank));
    }
  on_threads(size, [&](int rank) {
    Stream& stream = streams[static_cast<std::size_t>(rank)];
    for (auto& side : sides)
      if (side->rank() == rank) side->call(team[rank], {.stream = &stream});
    stream.synchronize();
  });
  for (auto& side : sides) EXPECT_EQ(side->faults(), "");
}

}  // namespace
}  // namespace treering::test
