// Start-up from the environment: by the launchers that are in PATH, and by hand.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

using testing::HasSubstr;

// ── launchers ───────────────────────────────────────────────────────────────────────────────

struct Launcher {
  const char* name;
  std::vector<std::string> programs;  ///< any of these, if `probe` says `answer`
  const char* probe;                  ///< its arguments
  const char* answer;
  const char* options;  ///< for 3 ranks, before the program
};
void PrintTo(const Launcher& launcher, std::ostream* out) { *out << launcher.name; }

const Launcher launchers[] = {
    {"torchrun", {"torchrun"}, "--help", "nproc", "--standalone --nproc-per-node 3 --no-python"},
    {"OpenMPI",
     {"mpirun.openmpi", "mpirun"},
     "--version",
     "Open MPI",
     "--allow-run-as-root --oversubscribe -n 3"},
    {"MPICH", {"mpiexec.hydra", "mpiexec.mpich", "mpiexec"}, "--version", "HYDRA build", "-n 3"},
    {"IntelMPI", {"mpiexec.hydra", "mpiexec"}, "--version", "Intel(R) MPI", "-n 3"},
    {"Slurm",
     {"srun"},
     "--immediate=20 --overcommit -n 1 echo reachable",
     "reachable",
     "--overcommit -n 3"},
};

struct Ran {
  std::string output;
  int status;
};

Ran run(const std::string& command) {
  FILE* const pipe = popen(("timeout 100 " + command + " 2>&1 < /dev/null").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  Ran ran;
  char piece[4096];
  while (const std::size_t got = fread(piece, 1, sizeof piece, pipe)) ran.output.append(piece, got);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

/// The path of a program in PATH that is this launcher, or empty.
std::string find(const Launcher& launcher) {
  std::istringstream folders(std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const std::string& program : launcher.programs) {
      const std::string path = folder + "/" + program;
      if (access(path.c_str(), X_OK) != 0) continue;
      const Ran ran = run(path + " " + launcher.probe);
      if (ran.status == 0 && ran.output.find(launcher.answer) != std::string::npos) return path;
    }
  return {};
}

/// A folder for one job: Open MPI's jobs that begin and end at once trip over each other's files.
class JobFolder {
 public:
  JobFolder() {
    std::string path = testing::TempDir() + "treering-job-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp " + path);
    path_ = path;
  }
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;
  ~JobFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Launchers : public testing::TestWithParam<Launcher> {};

TEST_P(Launchers, StartRanksThatFindOneAnother) {
  const Launcher& launcher = GetParam();
  const std::string path = find(launcher);
  if (path.empty())
    GTEST_SKIP() << launcher.name << " was not tried: none of "
                 << testing::PrintToString(launcher.programs)
                 << " in PATH is one that works. docs/starting.md says how to get it.";
  const std::string program =
      std::filesystem::canonical("/proc/self/exe").parent_path() / "example_launched";
  // Two jobs of one launcher at once do not meet.
  const JobFolder folders[2];
  const auto job = [&](const JobFolder& folder) {
    return fmt::format("TMPDIR={} {} {} {}", folder.path(), path, launcher.options, program);
  };
  const Ran ran = run(fmt::format("sh -c '{} & first=$!; {} & wait $! && wait $first'",
                                  job(folders[0]), job(folders[1])));
  EXPECT_EQ(ran.status, 0) << ran.output;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string line = fmt::format("rank {} of 3: sum = 6", rank);
    const auto first = ran.output.find(line);
    EXPECT_NE(first, std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find(line, first + 1), std::string::npos) << ran.output;
  }
}

INSTANTIATE_TEST_SUITE_P(InPath, Launchers, testing::ValuesIn(launchers),
                         [](const auto& info) { return std::string(info.param.name); });

// ── by hand ─────────────────────────────────────────────────────────────────────────────────

JobOptions by_hand(int size, const std::string& id) {
  return {.environment = {fmt::format("TREERING_SIZE={}", size), "TREERING_ID=" + id},
          .environment_of = [](int rank) {
            return std::vector{fmt::format("TREERING_RANK={}", rank)};
          }};
}

Case all_reduce(int size, std::uint64_t seed) {
  return {.pattern = {Collective::all_reduce, DataType::f32, ReduceOp::sum, size, 1000, seed}};
}

/// Two communicators from one environment.
const RegisterProgram from_environment("from_environment", [](const RankProcess& self) {
  Communicator first = Communicator::create_from_environment();
  Communicator second = Communicator::create_from_environment();
  const Place place = Place::from_environment();
  self.say(fmt::format("{}/{} {}/{} {}", place.rank, place.size, place.local_rank, place.local_size,
                       place.launcher));
  for (Communicator* comm : {&second, &first})
    self.say(fmt::format("{}/{}{}", comm->rank(), comm->size(),
                         checked_call(*comm, all_reduce(self.size, 5))));
});

TEST(FromEnvironment, ByHandAndSeveralTimes) {
  // Two jobs at once, of which each has two communicators.
  const std::string id = fmt::format("{} ", getpid());
  Job one("from_environment", 3, by_hand(3, id + "one")),
      other("from_environment", 3, by_hand(3, id + "other"));
  for (Job* job : {&one, &other})
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(job->hear(rank), fmt::format("{}/3 {}/3 by hand", rank, rank));
      EXPECT_EQ(job->hear(rank), fmt::format("{}/3", rank));
      EXPECT_EQ(job->hear(rank), fmt::format("{}/3", rank));
      EXPECT_EQ(job->wait(rank), 0);
    }
}

/// A start that failed on all ranks may be tried again.
const RegisterProgram twice("try_environment_twice", [](const RankProcess& self) {
  const auto start = [&] { Communicator::create_from_environment(); };
  self.hear();
  self.say(outcome_of(start).line());
  self.hear();
  self.say(outcome_of(start).line());
});

TEST(FromEnvironment, AgainAfterAFailure) {
  JobOptions options = by_hand(2, fmt::format("again {}", getpid()));
  options.environment.push_back("TREERING_START_TIMEOUT=1");
  Job job("try_environment_twice", 2, options);
  job.tell(0, "alone");
  EXPECT_EQ(job.hear_outcome(0).code, ErrorCode::timeout);
  job.tell(0, "together");
  job.tell(1, "together");
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(job.hear_outcome(rank).ok());
}

TEST(FromEnvironment, IsRefusedWithoutALauncher) {
  Job job("from_environment", 1);
  const Outcome o = job.hear_outcome(0);
  EXPECT_EQ(o.code, ErrorCode::invalid_setting);
  EXPECT_THAT(o.text, HasSubstr("no launcher has left a rank"));
}

}  // namespace
}  // namespace treering::test
