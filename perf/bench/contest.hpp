#pragma once

// Several ways to make the same call, timed against each other: in rounds, in each of which all of them have their
// turn, so that what changes on the machine meanwhile changes for all. Inputs are written anew before each turn.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perf/bench/cases.hpp"
#include "perf/bench/control.hpp"
#include "perf/bench/memory.hpp"
#include "perf/bench/message.hpp"

namespace treering::perf {

/// What is left free, Treering chooses.
struct Contender {
  std::optional<Algorithm> algorithm = {};
  std::optional<WireType> wire = {};
  std::string choice = {};  ///< as CallOptions::choice, for the rest: reading it takes time
  bool registered = true;
};

struct Match {
  Case what;
  std::vector<Contender> contenders;
  int rounds;
};

/// How many rounds a size gets: fewer where they last.
int rounds_for(std::size_t bytes) noexcept;

/// What came of one contender.
struct Result {
  std::vector<double> seconds;  ///< of a call on the slowest rank, by rounds
  Algorithm algorithm;
  WireType wire;
};

/// The median; of none: 0.
double median(std::vector<double> values);
/// The median of a contender's times over another's, round by round: of every second round, from `first` on.
double ratio(const Result& of, const Result& to, std::size_t first = 0, std::size_t step = 1);

/// One rank's part. Throws Error{unsupported} on devices whose memory the host cannot write.
class Contest {
 public:
  /// Allocates the buffers. The arguments must live as long as the contest.
  Contest(const std::vector<Match>&, Communicator&, Control&);

  /// All matches, in step with the other ranks; rank 0 sends one message for each contender of each.
  void run(int pipe);

  /// Such a message's content.
  static Result result_of(const Message&);

 private:
  struct Buffers {
    Memory input, output;
  };
  void play(const Match&, int pipe);
  double time(const Case&, const Contender&, int calls);
  Buffers& buffers(bool registered) { return registered ? registered_ : plain_; }

  const std::vector<Match>& matches_;
  Communicator& comm_;
  Control& control_;
  Buffers registered_, plain_;
  int fill_ = 0;
};

}  // namespace treering::perf
