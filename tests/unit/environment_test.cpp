// The place that a launcher gives a rank: what is read from which variables, and what is refused.

#include "transport/rendezvous/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/unique_fd.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

using testing::AllOf;
using testing::HasSubstr;

LaunchedPlace place_in(const Environment& variables) {
  return find_place(parse_settings(variables),
                    [&](std::string_view name) -> std::optional<std::string> {
                      for (const auto& [known, value] : variables)
                        if (known == name) return value;
                      return std::nullopt;
                    });
}

/// "launcher rank/size local_rank/local_size", or "code: text" of the error.
std::string result_in(const Environment& variables) {
  try {
    const LaunchedPlace p = place_in(variables);
    return p.launcher + " " + std::to_string(p.rank) + "/" + std::to_string(p.size) + " " +
           std::to_string(p.local_rank) + "/" + std::to_string(p.local_size);
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
}

/// These variables, with some of other values, or without them (empty).
Environment with(Environment base, const Environment& changes) {
  for (const auto& [name, value] : changes)
    std::erase_if(base, [&](const auto& variable) { return variable.first == name; });
  base.insert(base.end(), changes.begin(), changes.end());
  return base;
}

const Environment torchrun{{"RANK", "2"},
                           {"WORLD_SIZE", "4"},
                           {"LOCAL_RANK", "2"},
                           {"LOCAL_WORLD_SIZE", "4"},
                           {"MASTER_ADDR", "localhost"},
                           {"MASTER_PORT", "44319"},
                           {"TORCHELASTIC_RUN_ID", "f0e67ab9"},
                           {"TORCHELASTIC_RESTART_COUNT", "0"}};
const Environment open_mpi{{"OMPI_COMM_WORLD_RANK", "1"},
                           {"OMPI_COMM_WORLD_SIZE", "3"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "prterun-vm-4539@1"}};
const Environment slurm{{"SLURM_PROCID", "5"},      {"SLURM_NTASKS", "8"},  {"SLURM_LOCALID", "5"},
                        {"SLURM_NNODES", "1"},      {"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"},
                        {"SLURM_CLUSTER_NAME", "c"}};
const Environment by_hand{
    {"TREERING_RANK", "0"}, {"TREERING_SIZE", "2"}, {"TREERING_ID", "job 12"}};

class Places : public testing::Test {
 protected:
  Places() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    ours = UniqueFd(ends[0]);
    managers = UniqueFd(ends[1]);
    hydra = {{"PMI_RANK", "1"},
             {"PMI_SIZE", "2"},
             {"PMI_FD", std::to_string(ours.get())},
             {"MPI_LOCALRANKID", "1"},
             {"MPI_LOCALNRANKS", "2"}};
  }
  UniqueFd ours, managers;  // of the process manager's socket pair
  Environment hydra;
};

TEST_F(Places, AreReadFromEachLauncher) {
  EXPECT_EQ(result_in(torchrun), "torchrun 2/4 2/4");
  EXPECT_EQ(result_in(open_mpi), "Open MPI's mpirun 1/3 1/3");
  EXPECT_EQ(result_in(hydra), "mpiexec (PMI: MPICH, Intel MPI) 1/2 1/2");
  EXPECT_EQ(result_in(slurm), "Slurm's srun 5/8 5/8");
  EXPECT_EQ(result_in(by_hand), "by hand 0/2 0/2");
}

TEST_F(Places, NeedNoLocalVariables) {
  EXPECT_EQ(result_in(with(torchrun, {{"LOCAL_RANK", ""}, {"LOCAL_WORLD_SIZE", ""}})),
            "torchrun 2/4 2/4");
}

TEST_F(Places, ComeFromTheInnermostLauncher) {
  EXPECT_EQ(result_in(with(slurm, open_mpi)), "Open MPI's mpirun 1/3 1/3");
  EXPECT_EQ(result_in(with(slurm, hydra)), "mpiexec (PMI: MPICH, Intel MPI) 1/2 1/2");
  EXPECT_EQ(result_in(with(open_mpi, torchrun)), "torchrun 2/4 2/4");
  EXPECT_EQ(result_in(with(torchrun, by_hand)), "by hand 0/2 0/2");
}

/// `srun --mpi=pmi2` sets these beside its own.
TEST_F(Places, ComeFromSlurmIfItSpeaksPmi) {
  EXPECT_EQ(result_in(with(slurm, {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"PMI_FD", "11"}})),
            "Slurm's srun 5/8 5/8");
}

TEST_F(Places, OfOneJobHaveOneName) {
  const auto job = [](const Environment& e) { return place_in(e).job; };
  EXPECT_EQ(job(torchrun), job(with(torchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})));
  EXPECT_EQ(job(open_mpi), job(with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}})));
  EXPECT_EQ(job(hydra), job(with(hydra, {{"PMI_RANK", "0"}})));
  EXPECT_EQ(job(slurm), job(with(slurm, {{"SLURM_PROCID", "0"}})));
  EXPECT_EQ(job(by_hand), job(with(by_hand, {{"TREERING_RANK", "1"}})));
}

TEST_F(Places, OfOtherJobsHaveOtherNames) {
  const auto differ = [](const Environment& base, const Environment& change) {
    EXPECT_NE(place_in(base).job, place_in(with(base, change)).job) << change[0].first;
  };
  differ(torchrun, {{"TORCHELASTIC_RUN_ID", "another"}});
  differ(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}});
  differ(torchrun, {{"MASTER_PORT", "44320"}});
  differ(open_mpi, {{"PMIX_NAMESPACE", "prterun-vm-4539@2"}});
  differ(slurm, {{"SLURM_JOB_ID", "78"}});
  differ(slurm, {{"SLURM_STEP_ID", "1"}});
  differ(slurm, {{"SLURM_RESTART_COUNT", "1"}});
  differ(by_hand, {{"TREERING_ID", "job 13"}});
  for (const Environment& launched : {torchrun, open_mpi, slurm, hydra})
    differ(launched, {{"TREERING_ID", "job 12"}});
}

TEST_F(Places, OfOneMachineOnly) {
  EXPECT_THAT(result_in(with(torchrun, {{"LOCAL_WORLD_SIZE", "3"}})),
              AllOf(HasSubstr("unsupported: "), HasSubstr("spans several machines"),
                    HasSubstr("WORLD_SIZE=4, but LOCAL_WORLD_SIZE=3, by torchrun")));
  EXPECT_THAT(result_in(with(slurm, {{"SLURM_NNODES", "2"}})),
              AllOf(HasSubstr("unsupported: "), HasSubstr("(SLURM_NNODES=2, by Slurm's srun)")));
}

struct Refused {
  Environment variables;
  std::vector<std::string> parts;  ///< of the error's text
};

TEST_F(Places, ThatMakeNoSenseAreRefused) {
  const Refused all[] = {
      {with(torchrun, {{"WORLD_SIZE", ""}}), {"RANK=2, but WORLD_SIZE is not set"}},
      {with(torchrun, {{"RANK", ""}}), {"WORLD_SIZE=4, but RANK is not set"}},
      {with(torchrun, {{"RANK", "two"}}), {"RANK=two is no number"}},
      {with(torchrun, {{"RANK", "-1"}}), {"RANK=-1 is no number from 0"}},
      {with(torchrun, {{"RANK", "2 "}}), {"RANK=2  is no number"}},
      {with(torchrun, {{"RANK", "99999999999"}}), {"RANK=99999999999 is no number"}},
      {with(torchrun, {{"RANK", "4"}}), {"RANK=4, but WORLD_SIZE=4", "from 0 to 3"}},
      {with(torchrun, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE=0", "at least one rank"}},
      {with(torchrun, {{"LOCAL_RANK", "4"}}), {"LOCAL_RANK=4, but LOCAL_WORLD_SIZE=4"}},
      {with(torchrun, {{"LOCAL_WORLD_SIZE", "5"}}), {"LOCAL_WORLD_SIZE=5, but WORLD_SIZE=4"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, {"RANK=0 and WORLD_SIZE=2", "set TREERING_ID"}},
      {with(open_mpi, {{"OMPI_COMM_WORLD_SIZE", ""}}), {"OMPI_COMM_WORLD_SIZE is not set"}},
      {with(open_mpi, {{"PMIX_NAMESPACE", ""}}), {"set TREERING_ID"}},
      {with(hydra, {{"PMI_SIZE", ""}}), {"PMI_RANK=1, but PMI_SIZE is not set"}},
      {with(hydra, {{"PMI_FD", ""}}), {"set TREERING_ID"}},
      {with(hydra, {{"PMI_FD", "987654"}}), {"PMI_FD=987654", "MPI_Finalize", "set TREERING_ID"}},
      {with(slurm, {{"SLURM_NTASKS", ""}}), {"SLURM_PROCID=5, but SLURM_NTASKS is not set"}},
      {with(slurm, {{"SLURM_STEP_ID", ""}}), {"batch script", "srun"}},
      {with(by_hand, {{"TREERING_SIZE", "none"}}), {"TREERING_RANK=0, but TREERING_SIZE"}},
      {with(by_hand, {{"TREERING_RANK", "none"}}), {"TREERING_SIZE=2, but TREERING_RANK"}},
      {{{"TREERING_RANK", "0"}, {"TREERING_SIZE", "2"}}, {"TREERING_ID is not set"}},
      {{{"TREERING_RANK", "2"}, {"TREERING_SIZE", "2"}}, {"TREERING_RANK=2, but TREERING_SIZE=2"}},
      {{{"PMI_PORT", "vm:43003"}, {"PMI_ID", "1"}}, {"without -pmi-port"}},
      {{{"SLURM_NTASKS", "4"}},
       {"no launcher", "TREERING_RANK", "RANK and WORLD_SIZE (torchrun)", "OMPI_COMM_WORLD_RANK",
        "PMI_RANK", "SLURM_PROCID", "Communicator::create"}},
      {{}, {"no launcher"}},
  };
  for (const Refused& one : all) {
    const std::string result = result_in(one.variables);
    EXPECT_THAT(result, testing::StartsWith("invalid_setting: "));
    for (const std::string& part : one.parts) EXPECT_THAT(result, HasSubstr(part));
  }
}

}  // namespace
}  // namespace treering
