// The seam for remote peers, without a network: the same ring kernel, with some of its edges
// carried by a proxy thread between two staging areas.

#include "transport/proxy/relay.hpp"

#include <gtest/gtest.h>

#include "collectives/access.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

/// The edge from each rank below `carried` to the next goes through a relay.
class RelayedRing : public testing::TestWithParam<int> {};

TEST_P(RelayedRing, IsExact) {
  constexpr int n = 4;
  MappedPut put;
  Team team(n);
  Relay relay(put);  // ends before the team: it may still carry credits of the last call
  for (int r = 0; r < GetParam(); ++r) {
    const int next = (r + 1) % n;
    Membership &sender = membership(team[r]), &receiver = membership(team[next]);
    for (int c = 0; c < sender.channels(); ++c)
      relay.reroute(sender.edge(c, next), receiver.edge(c, r), sender.shape());
  }
  relay.start();
  std::uint64_t seed = 1;
  for (const std::size_t count : {0, 1, 6, 23, 1000, 70'001})
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
      for (const bool in_place : {false, true})
        check(team, {.pattern = {collective, DataType::f32, ReduceOp::sum, n, count, seed++},
                     .algorithm = Algorithm::ring,
                     .in_place = in_place});
  // Offers name more bytes than a slot has, in each slot once.
  for (int i = 0; i < 8; ++i)
    check(team,
          {.pattern = {Collective::all_reduce, DataType::f32, ReduceOp::sum, n, 100'001, seed++},
           .algorithm = Algorithm::two_shot});
}

INSTANTIATE_TEST_SUITE_P(CarriedEdges, RelayedRing, testing::Values(0, 2, 4));

}  // namespace
}  // namespace treering::test
