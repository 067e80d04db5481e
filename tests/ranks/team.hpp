#pragma once

// What tests of whole calls share: a team of ranks in this process, and one checked call on it.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "perf/call.hpp"
#include "perf/patterns.hpp"
#include "tests/ranks/guarded.hpp"
#include "tests/ranks/outcome.hpp"
#include "treering/treering.hpp"

namespace treering::test {

/// A communicator's ranks, all driven by one thread, each on a stream of its own. Works in every
/// execution.
class Team {
 public:
  explicit Team(int size, const Options& options = {});
  /// All ranks of a communicator.
  explicit Team(std::vector<Communicator> ranks);

  int size() const { return static_cast<int>(ranks_.size()); }
  std::span<Communicator> ranks() { return ranks_; }
  Communicator& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  /// `call(communicator, how)` for every rank, launched together; returns when all are done. Throws
  /// the first rank's error after all have ended.
  template <class Call>
  void each(Call call) {
    launch(call);
    synchronize();
  }

  /// The two halves of each().
  template <class Call>
  void launch(Call call) {
    LaunchGroup group;
    for (int r = 0; r < size(); ++r)
      call((*this)[r], CallOptions{.stream = &streams_[static_cast<std::size_t>(r)]});
    group.launch();
  }
  void synchronize();

  /// The same, but returns how each rank's call ended, or was refused.
  template <class Call>
  std::vector<Outcome> try_each(Call call) {
    std::vector<Outcome> outcomes;
    launch([&](Communicator& comm, const CallOptions& how) {
      outcomes.push_back(outcome_of([&] { call(comm, how); }));
    });
    // In the simulated GPU kernels run only while somebody waits for one.
    for (Stream& stream : streams_)
      while (!stream.idle()) std::this_thread::yield();
    for (std::size_t r = 0; r < streams_.size(); ++r)
      if (outcomes[r].ok()) outcomes[r] = outcome_of([&] { streams_[r].synchronize(); });
    return outcomes;
  }

 private:
  std::vector<Communicator> ranks_;
  std::vector<Stream> streams_;
};

/// One call, and where its buffers lie.
struct Case {
  Pattern pattern;
  std::optional<Algorithm> algorithm = {};
  std::optional<WireType> wire = {};
  bool in_place = false;
  bool registered = false;
  std::size_t offset = 0;  ///< elements by which buffers begin off their alignment

  std::string text() const;
};

/// One rank's side of a case: its buffers, poisoned and surrounded by guard bytes; the call; what is wrong after it.
class Side {
 public:
  Side(const Case&, int rank);
  int rank() const { return rank_; }

  void call(Communicator&, CallOptions how = {});
  /// Every wrong element, changed input and touched guard; empty if there is none.
  std::string faults() const;

 private:
  Guarded buffer() const;
  /// In place what lies beside the output must be kept.
  bool input_kept() const;

  Case case_;
  int rank_;
  Guarded output_;
  std::optional<Guarded> input_;  ///< none: in place both are parts of one buffer
  std::byte *in_, *out_;
};

/// Makes the call on one rank, blocking, and says what is wrong afterwards: nothing if empty.
std::string checked_call(Communicator&, const Case&);

/// Makes the call on every rank. Adds a failure of the test, with the case's text, for every rank on which
/// something is wrong.
void check(Team& team, const Case& one);

}  // namespace treering::test
