#pragma once

// `treering perf … --forced-choices`: how far Treering's own choice is from the best that can be forced.

#include <string>
#include <vector>

#include "perf/bench/contest.hpp"
#include "perf/bench/options.hpp"

namespace treering::perf {

/// The contenders of a case: Treering's own choice, then each algorithm over each wire.
std::vector<Match> forced_choice_matches(const Options&, const std::vector<Case>&);

/// What came of a match.
struct Verdict {
  std::size_t best;  ///< number of the fastest forced contender
  double ratio;      ///< of the automatic choice's time to its; 1 if it is the same way
};
/// The best is found in one half of the rounds, and compared in the other: else luck would look like merit. Results: of
/// the automatic choice, then of the others.
Verdict judge(const std::vector<Result>&);

/// All of it, as run() in command.hpp. Prints a row for each case, and the summary.
int run_forced_choices(const Options&, const std::vector<Case>&,
                       const std::vector<std::string>& command_line, const std::string& worker);

}  // namespace treering::perf
