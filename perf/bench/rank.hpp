#pragma once

// What one rank does: every case is first timed, then checked on fresh data, out of place and in
// place.

#include <optional>
#include <vector>

#include "perf/bench/cases.hpp"
#include "perf/bench/control.hpp"
#include "perf/bench/memory.hpp"
#include "perf/bench/message.hpp"

namespace treering::perf {

/// What is forced for every call by way of the communicator, and by each call.
treering::Options communicator_options(const Options&);
CallOptions call_options(const Options&);

class Rank {
 public:
  /// Allocates the buffers. The arguments must live as long as the rank.
  Rank(const Options&, const std::vector<Case>&, Communicator&, Control&);

  /// Works through all cases, in step with the other ranks; rank 0 sends a row of each to `pipe`.
  /// Throws Error, Stopped.
  void run(int pipe);

 private:
  struct Placement;
  Placement place(const Pattern&, bool in_place, std::size_t shift_in, std::size_t shift_out) const;

  Measurement measure(const Case&, bool in_place);
  double time(const Placement&);
  double time_iterations(const Placement&, int iterations);
  double time_rewritten(const Placement&);
  void check(const Case&, bool in_place, Measurement&);
  void check_call(const Placement&, Share&);
  std::uint64_t check_barriers();

  Pattern fresh(const Case&, bool in_place);
  void write_input(const Placement&) const;
  void call(const Placement&);
  void finish();

  const Options& options_;
  const std::vector<Case>& cases_;
  Communicator& comm_;
  Control& control_;
  const int me_;
  Memory first_, second_;
  std::optional<Stream> stream_;  // on a GPU, so that launches overlap; on the host calls block
  CallOptions how_;
  std::uint64_t seed_ = 0, barriers_ = 0;
};

}  // namespace treering::perf
