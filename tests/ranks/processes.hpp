#pragma once

// Ranks as processes. The test binary starts itself again, once a rank, with a hidden argument that
// names a *rank program*; both talk in lines over the rank's standard input and output.
//
//     test ── Job("loop", 3) ──┬─ exec ─► rank 0: program "loop"       say() ──► hear()
//                              ├─ exec ─► rank 1                      hear() ◄── tell()
//                              └─ exec ─► rank 2
//
// Nothing outlives the job: its destructor kills what is left, and the kernel kills the ranks of a
// test that is killed itself.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tests/ranks/outcome.hpp"
#include "treering/treering.hpp"

namespace treering::test {

/// What a rank program knows of itself, and how it talks with the test.
struct RankProcess {
  UniqueId id;
  int size, rank;
  std::string argument;  ///< of the job

  void say(const std::string& line) const;
  /// The next line that the test tells; empty at the end.
  std::string hear() const;
  Communicator join() const { return Communicator::create(id, size, rank); }
};

/// A rank program. A treering::Error that leaves it is said as an Outcome, and ends the process
/// with status 3.
using RankProgram = std::function<void(const RankProcess&)>;

/// Defined at namespace scope: makes a program known by its name.
struct RegisterProgram {
  RegisterProgram(const char* name, RankProgram program);
};

/// For main(): if this process is a rank, runs its program and returns true.
bool run_as_rank(int argc, char** argv, int& status);

/// How a job is started. `environment`: "NAME=value" to be added for all ranks, or for one.
struct JobOptions {
  std::string argument = {};
  std::vector<std::string> environment = {};
  std::function<std::vector<std::string>(int rank)> environment_of = {};
  UniqueId id = UniqueId::create();
};

class Job {
 public:
  Job(const std::string& program, int size, const JobOptions& options = {});
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  int size() const { return static_cast<int>(ranks_.size()); }
  pid_t pid(int rank) const { return at(rank).pid; }
  void kill(int rank, int signal);

  void tell(int rank, const std::string& line);
  void tell_all(const std::string& line);
  /// The next line that the rank says. Throws std::runtime_error if it ends or is silent for long.
  std::string hear(int rank);
  /// Hears one line of each rank, which must be that one.
  void expect_all(const std::string& line);
  /// Outcomes of ranks, which must be what they say next.
  Outcome hear_outcome(int rank) { return Outcome::parse(hear(rank)); }
  std::vector<Outcome> hear_outcomes();

  /// The rank's exit status, or minus the signal that killed it. Throws as hear() does. May be
  /// repeated.
  int wait(int rank);

  /// How long a silent rank is waited for.
  static std::chrono::seconds patience();

 private:
  struct Rank {
    pid_t pid = -1;
    int input = -1, output = -1;  // the test's ends
    std::string heard;            // not yet a whole line
    bool ended = false;
    int status = 0;
  };
  Rank& at(int rank) { return ranks_.at(static_cast<std::size_t>(rank)); }
  const Rank& at(int rank) const { return ranks_.at(static_cast<std::size_t>(rank)); }
  void start(const std::string& program, int rank, const JobOptions& options);

  std::vector<Rank> ranks_;
};

}  // namespace treering::test
