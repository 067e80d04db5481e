// Groups: split and subset, among threads and processes and by one thread, nested, overlapping, many
// at once, beside their parent, and what callers get wrong.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/ranks/boards.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/resources.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto f32 = DataType::f32;
constexpr auto sum = ReduceOp::sum;

Case all_reduce(int size, std::uint64_t seed = 1) {
  return {.pattern = {Collective::all_reduce, f32, sum, size, 1000, seed}};
}

/// Whether this rank's group works; nothing if empty.
std::string fault_of(Communicator& comm, std::uint64_t seed = 1) {
  return checked_call(comm, all_reduce(comm.size(), seed));
}

std::vector<int> global_ranks(const Communicator& comm) {
  std::vector<int> all;
  for (int r = 0; r < comm.size(); ++r) all.push_back(comm.global_rank(r));
  EXPECT_EQ(all[static_cast<std::size_t>(comm.rank())], comm.global_rank());
  return all;
}

/// body(communicator) on a thread for each rank, without an Error.
template <class Body>
void on_ranks(int size, Body body) {
  const UniqueId id = UniqueId::create();
  for (const Outcome& o : on_threads(size, [&](int rank) {
         Communicator comm = Communicator::create(id, size, rank);
         body(comm);
       }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

TEST(Split, OrdersByKeyThenRank) {
  on_ranks(6, [](Communicator& world) {
    constexpr int colors[] = {7, 0, 7, 0, 7, -3}, keys[] = {5, 0, -1, 0, 5, 9};
    const int me = world.rank();
    auto group = world.split(colors[me], keys[me]);
    ASSERT_EQ(group.has_value(), colors[me] >= 0);
    if (!group) return;
    const auto members = me % 2 == 0 ? std::vector{2, 0, 4} : std::vector{1, 3};
    EXPECT_EQ(global_ranks(*group), members);
    EXPECT_EQ(group->global_rank(), me);
    EXPECT_EQ(group->local_rank(), group->rank());
    EXPECT_EQ(group->local_size(), group->size());
    EXPECT_EQ(fault_of(*group), "");
  });
}

TEST(Split, Nests) {
  on_ranks(6, [](Communicator& world) {
    auto outer = world.split(world.rank() / 3, -world.rank());  // 2 1 0 and 5 4 3
    auto inner = outer->split(outer->rank() == 1 ? 1 : 0, 0);   // 2 0, 1, 5 3, 4
    auto innermost = inner->split(0, -inner->rank());
    const std::vector<int> members[] = {{0, 2}, {1}, {0, 2}, {3, 5}, {4}, {3, 5}};
    EXPECT_EQ(global_ranks(*innermost), members[world.rank()]);
    for (Communicator* comm : {&*innermost, &*outer, &world, &*inner})
      EXPECT_EQ(fault_of(*comm), "");
  });
}

TEST(Split, GivesAllOfTheSameColorOneGroup) {
  on_ranks(5, [](Communicator& world) {
    auto group = world.split(0, 0);
    EXPECT_THAT(global_ranks(*group), ElementsAre(0, 1, 2, 3, 4));
    EXPECT_EQ(fault_of(*group), "");
  });
}

TEST(Split, GivesNobodyAGroup) {
  on_ranks(2, [](Communicator& world) {
    EXPECT_FALSE(world.split(-1, 0).has_value());
    EXPECT_EQ(fault_of(world), "");
  });
}

TEST(Subset, HasTheOrderOfTheList) {
  on_ranks(4, [](Communicator& world) {
    if (world.rank() == 1) return;
    Communicator group = world.subset(std::vector{3, 0, 2});
    EXPECT_THAT(global_ranks(group), ElementsAre(3, 0, 2));
    EXPECT_EQ(fault_of(group), "");
  });
}

TEST(Subset, OfOne) {
  on_ranks(2, [](Communicator& world) {
    Communicator alone = world.subset(std::vector{world.rank()});
    EXPECT_EQ(alone.size(), 1);
    EXPECT_EQ(alone.global_rank(), world.rank());
    EXPECT_EQ(fault_of(alone), "");
  });
}

/// Every pair, and some of them twice: used in an order that has nothing to do with their making.
TEST(Subset, OverlappingAndManyAtOnce) {
  constexpr int n = 5;
  on_ranks(n, [](Communicator& world) {
    std::vector<Communicator> groups;
    for (int twice = 0; twice < 2; ++twice)
      for (int a = 0; a < n; ++a)
        for (int b = a + 1; b < n; ++b)
          if (world.rank() == a || world.rank() == b)
            groups.push_back(world.subset(std::vector{b, a}));
    for (std::size_t i = groups.size(); i-- > 0;) {
      const auto seed =
          static_cast<std::uint64_t>(groups[i].global_rank(0) * n + groups[i].global_rank(1));
      EXPECT_EQ(fault_of(groups[i], seed), "");
    }
    EXPECT_EQ(fault_of(world), "");
  });
}

TEST(Subset, WhileTheParentIsInUse) {
  on_ranks(3, [](Communicator& world) {
    constexpr int calls = 300;
    std::thread busy([&] {
      for (std::uint64_t i = 0; i < calls; ++i) EXPECT_EQ(fault_of(world, i), "");
    });
    for (std::uint64_t i = 0; i < 5; ++i) {
      Communicator all = world.subset(std::vector{2, 1, 0});
      EXPECT_EQ(fault_of(all, i), "");
    }
    busy.join();
  });
}

TEST(Groups, OutliveTheirParent) {
  on_ranks(3, [](Communicator& world) {
    std::optional<Communicator> group = world.split(0, 0);
    Communicator inner = group->subset(std::vector{1, 0, 2});
    { const Communicator gone = std::move(world); }
    group.reset();
    EXPECT_EQ(fault_of(inner), "");
  });
}

TEST(Groups, FailAlone) {
  on_ranks(3, [](Communicator& world) {
    auto group = world.split(0, -world.rank());
    if (group->rank() == 1) group->abort();
    const Outcome o = outcome_of([&] { fault_of(*group); });
    EXPECT_EQ(o.code, ErrorCode::aborted);
    EXPECT_THAT(o.ranks, ElementsAre(1));  // its number in the group
    EXPECT_EQ(fault_of(world), "");
    world.barrier();
  });
}

TEST(Groups, HoldNothingAfterwards) {
  on_ranks(2, [](Communicator& world) {
    const auto round = [&] {
      auto group = world.split(0, 0);
      EXPECT_EQ(fault_of(*group), "");
      group.reset();
      world.barrier();
    };
    const bool looks = world.rank() == 0;  // one thread alone: a look makes something, too
    for (int i = 0; i < 10; ++i) round();
    const std::size_t before = looks ? Resources::swept().arena : 0;
    world.barrier();
    for (int i = 0; i < 100; ++i) round();
    if (looks) {
      EXPECT_EQ(Resources::swept().arena, before);
    }
    world.barrier();
  });
}

/// Rank 0's barrier waits for rank 1, which makes a group first.
TEST(Groups, AreMadeWhileACallWaits) {
  on_ranks(2, [](Communicator& world) {
    std::jthread early;
    if (world.rank() == 0) {
      early = std::jthread([&] { world.barrier(); });
      while (!has_begun(world, 1)) std::this_thread::yield();
    }
    Communicator all = world.subset(std::vector{0, 1});
    EXPECT_EQ(fault_of(all), "");
    if (world.rank() == 1) world.barrier();
  });
}

/// Each rank splits from several threads at once: the groups are made one after the other.
TEST(Groups, AreMadeBySeveralThreadsAtOnce) {
  on_ranks(2, [](Communicator& world) {
    const auto make = [&] {
      for (int i = 0; i < 10; ++i) {
        auto all = world.split(0, 0);
        EXPECT_EQ(fault_of(*all), "");
        Communicator turned = world.subset(std::vector{1, 0});
        EXPECT_EQ(fault_of(turned), "");
      }
    };
    std::jthread other(make);
    make();
  });
}

/// Of the same members, by threads that cannot know each other's order.
TEST(Groups, OfASplitAndOfASubsetDoNotMeet) {
  on_ranks(2, [](Communicator& world) {
    std::jthread other([&] {
      for (int i = 0; i < 10; ++i) {
        auto group = world.split(0, 0);
        EXPECT_EQ(fault_of(*group, 1), "");
      }
    });
    for (int i = 0; i < 10; ++i) {
      Communicator group = world.subset(std::vector{0, 1});
      EXPECT_EQ(fault_of(group, 2), "");
    }
  });
}

// ── what callers get wrong ──────────────────────────────────────────────────────────────────

TEST(Subset, RefusesWrongLists) {
  on_ranks(3, [](Communicator& world) {
    const auto expect_refused = [&](const std::vector<int>& ranks, const char* why) {
      const Outcome o = outcome_of([&] { world.subset(ranks); });
      EXPECT_EQ(o.code, ErrorCode::invalid_argument);
      EXPECT_THAT(o.ranks, ElementsAre(world.rank()));
      EXPECT_THAT(o.text, HasSubstr(fmt::format("subset on rank {}: {}", world.rank(), why)));
    };
    expect_refused({0, 1, 3, 2}, "`ranks[2]` = 3, but ranks go from 0 to 2");
    expect_refused({-1, 0, 1, 2}, "`ranks[0]` = -1");
    expect_refused({0, 1, 2, 1}, "`ranks[1]` and `ranks[3]` are both 1");
    expect_refused({}, "this rank is not among `ranks` ()");
    const int other = (world.rank() + 1) % 3;
    expect_refused({other}, fmt::format("this rank is not among `ranks` ({})", other).c_str());
    Communicator group = world.subset(std::vector{0, 1, 2});
    EXPECT_EQ(fault_of(group), "");
    EXPECT_EQ(outcome_of([&] { static_cast<void>(world.global_rank(3)); }).code,
              ErrorCode::invalid_argument);
    EXPECT_EQ(outcome_of([&] { static_cast<void>(world.global_rank(-1)); }).code,
              ErrorCode::invalid_argument);
  });
}

TEST(Groups, OfABrokenParentAreRefused) {
  on_ranks(2, [](Communicator& world) {
    world.abort();
    EXPECT_EQ(outcome_of([&] { world.subset(std::vector{0, 1}); }).code, ErrorCode::aborted);
    EXPECT_EQ(outcome_of([&] { world.split(0, 0); }).code, ErrorCode::aborted);
  });
}

// ── one thread with all ranks ───────────────────────────────────────────────────────────────

TEST(SplitLocal, GroupsNestAndWork) {
  Team world(6);
  const int colors[] = {1, 0, 1, -1, 0, 1}, keys[] = {0, 0, -5, 0, -1, 0};
  auto split = Communicator::split_local(world.ranks(), colors, keys);
  ASSERT_EQ(split.size(), 6u);
  EXPECT_FALSE(split[3].has_value());
  std::vector<Communicator> members;
  for (const int r : {2, 0, 5}) members.push_back(std::move(*split[static_cast<std::size_t>(r)]));
  Team group(std::move(members));
  EXPECT_THAT(global_ranks(group[1]), ElementsAre(2, 0, 5));
  check(group, all_reduce(3));

  auto again = Communicator::split_local(group.ranks(), std::vector{0, 1, 0}, std::vector{1, 0, 0});
  EXPECT_THAT(global_ranks(*again[0]), ElementsAre(5, 2));
  EXPECT_THAT(global_ranks(*again[1]), ElementsAre(0));
  members.clear();
  for (const std::size_t r : {2u, 0u}) members.push_back(std::move(*again[r]));
  Team inner(std::move(members));
  check(inner, all_reduce(2));
  check(world, all_reduce(6));
}

TEST(SplitLocal, RefusesWhatIsNotAWholeCommunicator) {
  Team one(2), other(2);
  const std::vector<int> two(2), three(3);
  const auto expect_refused = [](std::span<Communicator> ranks, std::span<const int> colors,
                                 std::span<const int> keys, const char* why) {
    const Outcome o = outcome_of([&] { Communicator::split_local(ranks, colors, keys); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text, HasSubstr(why));
  };
  expect_refused(one.ranks(), two, three, "2 ranks, but 2 colors and 3 keys");
  expect_refused(one.ranks().first(1), std::vector{0}, std::vector{0}, "`ranks[0]` is rank 0 of 2");
  std::swap(one[0], one[1]);
  expect_refused(one.ranks(), two, two, "`ranks[0]` is rank 1 of 2");
  std::swap(one[0], one[1]);
  std::swap(one[1], other[1]);
  expect_refused(one.ranks(), two, two, "`ranks[1]` is of another communicator than `ranks[0]`");
}

/// Ranks of create_local() split by threads of their own as well.
TEST(Split, OfLocalRanks) {
  std::vector<Communicator> world = Communicator::create_local(4);
  for (const Outcome& o : on_threads(4, [&](int rank) {
         auto group = world[static_cast<std::size_t>(rank)].split(rank % 2, 0);
         EXPECT_EQ(fault_of(*group), "");
       }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

// ── processes ───────────────────────────────────────────────────────────────────────────────

const RegisterProgram grouping("grouping", [](const RankProcess& self) {
  Communicator world = self.join();
  auto half = world.split(self.rank % 2, -self.rank);
  self.say(fmt::format("{}{}", fmt::join(global_ranks(*half), " "), fault_of(*half)));
  auto inner = half->split(0, half->rank());
  self.say(fmt::format("{}{}", fmt::join(global_ranks(*inner), " "), fault_of(*inner)));
  // In the group of 3 and 1, rank 1 (of the world: 1) calls something else.
  std::vector<float> data(10);
  self.say(outcome_of([&] {
             inner->all_reduce(data.data(), data.data(), self.rank == 1 ? 5 : 10, f32, sum);
           }).line());
  self.say(fault_of(world));
});

TEST(Groups, OfProcesses) {
  Job job("grouping", 4);
  for (int rank = 0; rank < 4; ++rank) {
    const char* const members = rank % 2 == 0 ? "2 0" : "3 1";
    EXPECT_EQ(job.hear(rank), members);
    EXPECT_EQ(job.hear(rank), members);
    const Outcome o = job.hear_outcome(rank);
    if (rank % 2 == 0) {
      EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
    } else {
      EXPECT_EQ(o.code, ErrorCode::mismatch);
      EXPECT_THAT(o.text, HasSubstr("rank 1 called all_reduce(f32 × 5, sum)"));
    }
    EXPECT_EQ(job.hear(rank), "");
    EXPECT_EQ(job.wait(rank), 0);
  }
}

/// A member that did not come once comes later.
const RegisterProgram late("late_member", [](const RankProcess& self) {
  Communicator world = self.join();
  for (std::string line; !(line = self.hear()).empty();)
    self.say(outcome_of([&] {
               Communicator group = world.subset(std::vector{1, 0});
               if (const std::string fault = fault_of(group); !fault.empty()) self.say(fault);
             }).line());
});

TEST(Groups, AgainAfterAFailure) {
  Job job("late_member", 2, {.environment = {"TREERING_START_TIMEOUT=1"}});
  job.tell(1, "alone");
  const Outcome o = job.hear_outcome(1);
  EXPECT_EQ(o.code, ErrorCode::timeout);
  EXPECT_THAT(o.ranks, ElementsAre(0));  // as the world counts; in the group it is rank 1
  EXPECT_THAT(o.text, HasSubstr("the group of ranks 1, 0 on rank 1: waited 1 s for rank 0"));
  job.tell_all("together");
  for (const Outcome& both : job.hear_outcomes())
    EXPECT_TRUE(both.ok()) << testing::PrintToString(both);
}

/// Who waits for a member hears what the parent knows of it.
TEST(Groups, DoNotWaitForTheDead) {
  Job job("late_member", 2);
  job.tell_all("together");
  for (const Outcome& both : job.hear_outcomes()) EXPECT_TRUE(both.ok());
  job.tell(1, "alone");
  job.kill(0, SIGKILL);
  const Outcome o = job.hear_outcome(1);
  EXPECT_EQ(o.code, ErrorCode::peer_lost) << testing::PrintToString(o);
  EXPECT_LT(o.took, std::chrono::seconds(10));
}

TEST(Groups, AreNotWaitedForAfterAbort) {
  on_ranks(3, [](Communicator& world) {
    if (world.rank() == 2) return world.abort();
    const Outcome o = outcome_of([&] { world.subset(std::vector{0, 1, 2}); });
    EXPECT_EQ(o.code, ErrorCode::aborted) << testing::PrintToString(o);
    EXPECT_LT(o.took, std::chrono::seconds(10));
  });
}

}  // namespace
}  // namespace treering::test
