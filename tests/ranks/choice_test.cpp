// What calls are made by: the costs in the user's cache folder, those of rank 0 for all, and what is forced.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "collectives/costs_file.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr int size = 3;

/// A cache folder of this test, which vanishes with it.
class Cache : public testing::Test {
 protected:
  Cache() : folder_(fs::temp_directory_path() / fmt::format("treering-cache-{}", getpid())) {
    fs::remove_all(folder_);
    if (const char* const before = std::getenv(variable)) before_ = before;
    setenv(variable, folder_.c_str(), 1);
  }
  ~Cache() override {
    before_.empty() ? unsetenv(variable) : setenv(variable, before_.c_str(), 1);
    fs::remove_all(folder_);
  }

  static constexpr const char* variable = "XDG_CACHE_HOME";
  const fs::path folder_;
  std::string before_;
};

/// Costs by which one algorithm of all-reduce is the cheapest at all sizes.
Costs costs_for(Algorithm algorithm) {
  Costs costs = default_costs(Machine::cpu, size, 2);
  for (std::size_t i = 0; i < ways.size(); ++i)
    if (ways[i] == Way{Collective::all_reduce, algorithm, Path::staged}) costs.of[i].fill(1);
  return costs;
}

Case all_reduce(int ranks) {
  return {.pattern = {Collective::all_reduce, DataType::f32, ReduceOp::sum, ranks, 1000, 1}};
}

std::string used(Communicator& comm) {
  const std::string faults = checked_call(comm, all_reduce(comm.size()));
  return faults.empty() ? name(comm.last_call().algorithm) : faults;
}

/// Says what is used among all ranks, then in a group of two of them.
const RegisterProgram says_algorithm("says algorithm", [](const RankProcess& self) {
  Communicator comm = self.join();
  self.say(used(comm));
  auto pair = comm.split(self.rank > 0 ? 1 : -1, 0);
  self.say(pair ? used(*pair) : "none");
});

TEST_F(Cache, HoldsWhatIsChosenBy) {
  const Costs built_in = find_costs(Execution::host, size);
  store_costs(costs_for(Algorithm::tree), size);
  EXPECT_EQ(find_costs(Execution::host, size), costs_for(Algorithm::tree));
  EXPECT_EQ(find_costs(Execution::host, size + 1).of.size(), ways.size());
  EXPECT_NE(find_costs(Execution::host, size + 1), costs_for(Algorithm::tree)) << "another number";
  EXPECT_EQ(find_costs(Execution::simt, size), built_in) << "measured on the CPU";
  store_costs(costs_for(Algorithm::ring), size);
  EXPECT_EQ(find_costs(Execution::host, size), costs_for(Algorithm::ring));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "treering"), {}), 1)
      << "nothing else is left";
}

TEST_F(Cache, ThatIsDamagedIsWarnedOf) {
  const Costs built_in = find_costs(Execution::host, size);
  store_costs(costs_for(Algorithm::tree), size);
  const fs::path file = costs_file(size);
  fs::resize_file(file, fs::file_size(file) - 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_costs(Execution::host, size), built_in);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning: The costs in " + file.string() + " are not used: it ends"),
                    HasSubstr("treering tune")));
  std::ofstream(file) << "treering costs 0\n";
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_costs(Execution::host, size), built_in);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("is 'treering costs 0'"));
}

TEST_F(Cache, ThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_) << "no folder";
  const Outcome o = outcome_of([] { store_costs(costs_for(Algorithm::tree), size); });
  EXPECT_EQ(o.code, ErrorCode::system);
  EXPECT_THAT(o.text, AllOf(HasSubstr(folder_.string()), HasSubstr("XDG_CACHE_HOME")));
  const Outcome none = outcome_of([] { find_costs(Execution::host, size); });
  EXPECT_TRUE(none.ok()) << none.text;
}

TEST_F(Cache, OfRank0CountsForAll) {
  store_costs(costs_for(Algorithm::tree), size);
  store_costs(costs_for(Algorithm::ring), 2);
  const std::string others = folder_ / "others";
  setenv(variable, others.c_str(), 1);
  store_costs(costs_for(Algorithm::ring), size);
  store_costs(costs_for(Algorithm::two_shot), 2);
  Job job("says algorithm", size, {.environment_of = [&](int rank) {
            return std::vector{fmt::format("{}={}", variable,
                                           rank == 0   ? folder_.string()
                                           : rank == 1 ? others
                                                       : "/nowhere")};
          }});
  job.expect_all("tree");
  EXPECT_EQ(job.hear(0), "none");
  for (const int r : {1, 2})
    EXPECT_EQ(job.hear(r), "two_shot") << "of rank 1, which is first there";
}

TEST_F(Cache, CountsForRanksOfOneProcessAndTheirGroups) {
  store_costs(costs_for(Algorithm::tree), size);
  store_costs(costs_for(Algorithm::ring), 2);
  Team team(size);
  check(team, all_reduce(size));
  for (Communicator& comm : team.ranks()) EXPECT_EQ(comm.last_call().algorithm, Algorithm::tree);
  auto groups =
      Communicator::split_local(team.ranks(), std::vector{0, 0, -1}, std::vector{0, 0, 0});
  std::vector<Communicator> two;
  two.push_back(std::move(*groups[0]));
  two.push_back(std::move(*groups[1]));
  Team pair(std::move(two));
  check(pair, all_reduce(2));
  for (Communicator& comm : pair.ranks()) EXPECT_EQ(comm.last_call().algorithm, Algorithm::ring);
}

TEST(ForcedChoice, OfACallOverridesTheEnvironmentAndTheCommunicator) {
  Team team(size, {.algorithm = Algorithm::ring});
  const auto algorithm = [&](const CallOptions& wanted) {
    Case one = all_reduce(size);
    std::vector<Side> sides;
    for (int r = 0; r < size; ++r) sides.emplace_back(one, r);
    team.each([&](Communicator& comm, CallOptions how) {
      how.choice = wanted.choice;
      Side& side = sides[static_cast<std::size_t>(comm.rank())];
      side.call(comm, how);
    });
    for (const Side& side : sides) EXPECT_EQ(side.faults(), "");
    return team[0].last_call().algorithm;
  };
  EXPECT_EQ(algorithm({}), Algorithm::ring);
  EXPECT_EQ(algorithm({.choice = "all_reduce:0-4000=two_shot,4000-=tree"}), Algorithm::tree);
  EXPECT_EQ(algorithm({.choice = "all_reduce:0-4001=two_shot/chunk64,4001-=tree"}),
            Algorithm::two_shot);
  EXPECT_EQ(algorithm({.choice = "broadcast:tree"}), Algorithm::ring);
}

TEST(ForcedChoice, ThatIsNotUnderstoodCostsNothing) {
  Team team(size);
  float x = 0;
  const Outcome o = outcome_of([&] {
    team[1].all_reduce(&x, &x, 1, DataType::f32, ReduceOp::sum, {.choice = "all_reduce:0-=rings"});
  });
  EXPECT_EQ(o.code, ErrorCode::invalid_argument);
  EXPECT_THAT(o.text, HasSubstr("'rings' at letter 15 of the choice"));
  check(team, all_reduce(size));
}

const RegisterProgram says_forced("says forced", [](const RankProcess& self) {
  Communicator comm = self.join();
  self.say(used(comm));
});

TEST(ForcedChoice, OfTheEnvironmentComesBeforeTheAlgorithm) {
  Job job("says forced", 2,
          {.environment = {"TREERING_CHOICE=all_reduce:4000-=tree", "TREERING_ALGORITHM=ring"}});
  job.expect_all("tree");
  Job other("says forced", 2,
            {.environment = {"TREERING_CHOICE=all_reduce:4001-=tree", "TREERING_ALGORITHM=ring"}});
  other.expect_all("ring");
}

/// Streaming and chunks change no result.
TEST(ForcedChoice, OfStoresAndChunksIsExact) {
  Team team(size);
  for (const char* const stores : {"streaming", "cached", "streaming_slots", "cached_slots"})
    for (int i = 0; i < collectives; ++i) {
      const auto collective = static_cast<Collective>(i);
      Case one{.pattern = {.collective = collective,
                           .type = DataType::f32,
                           .op = ReduceOp::sum,
                           .ranks = size,
                           .count = 5001,
                           .seed = 3}};
      if (collective == Collective::barrier) continue;
      const std::string choice = fmt::format("{}:{}/chunk1000", name(collective), stores);
      std::vector<Side> sides;
      for (int r = 0; r < size; ++r) sides.emplace_back(one, r);
      team.each([&](Communicator& comm, CallOptions how) {
        how.choice = choice;
        sides[static_cast<std::size_t>(comm.rank())].call(comm, how);
      });
      for (const Side& side : sides) EXPECT_EQ(side.faults(), "") << choice;
    }
}

}  // namespace
}  // namespace treering::test
