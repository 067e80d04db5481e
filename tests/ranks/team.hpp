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

  /// The same, but returns how each rank's call ended.
  template <class Call>
  std::vector<Outcome> try_each(Call call) {
    launch(call);
    // In the simulated GPU kernels run only while somebody waits for one.
    for (Stream& stream : streams_)
      while (!stream.idle()) std::this_thread::yield();
    std::vector<Outcome> outcomes;
    for (Stream& stream : streams_) outcomes.push_back(outcome_of([&] { stream.synchronize(); }));
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
  bool in_place = false;
  bool registered = false;
  std::size_t offset = 0;  ///< elements by which buffers begin off their alignment

  std::string text() const;
};

/// Makes the call on one rank, blocking, and says what is wrong afterwards: nothing if empty.
std::string checked_call(Communicator&, const Case&);

/// Makes the call on every rank; its outputs are poisoned first, and surrounded by guard bytes.
/// Adds a failure of the test, with the case's text, for every rank with a wrong element, a changed
/// input or a touched guard.
void check(Team& team, const Case& one);

}  // namespace treering::test
