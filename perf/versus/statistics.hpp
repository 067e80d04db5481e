#pragma once

// From the times of rounds to what is reported: pure functions.

#include <optional>
#include <string>
#include <vector>

namespace treering::perf {

/// How near the cores of the ranks were during a round. On virtual machines this changes within
/// seconds, and it changes every time by a factor of two to seven.
enum class Distance { near, far };
const char* name(Distance) noexcept;

/// A flag exchange that takes less is between near cores.
inline constexpr double near_below_seconds = 0.18e-6;

/// By the exchanges before and after a round; nothing if they disagree.
std::optional<Distance> classify(double seconds_before, double seconds_after) noexcept;

/// The value below which a share of the values lies, between two of them in proportion; `values`
/// must not be empty.
double quantile(std::vector<double> values, double share);

/// The middle of some values, and the quarter and three quarters points.
struct Spread {
  double low = 0, middle = 0, high = 0;
};
Spread spread(const std::vector<double>& values);

/// Seconds of one call in one round: ours, and each peer's, in the order of their names. A peer that
/// has no such call, or is gone, has none.
struct Round {
  std::optional<Distance> distance;
  double ours = 0;
  std::vector<std::optional<double>> peers;
};

struct PeerSummary {
  std::string name;
  double seconds = 0;  ///< the median
  double ratio = 0;    ///< the median, over rounds, of its time over ours
};

/// One class of the rounds of a case.
struct Comparison {
  Distance distance{};
  int rounds = 0;                  ///< in this class
  int dropped = 0;                 ///< of the same case: the probes disagreed
  double seconds = 0;              ///< ours, the median
  std::vector<PeerSummary> peers;  ///< those that were there in every round of the class
  std::string best_peer;           ///< the one with the least ratio; empty if there is none
  Spread ratio;              ///< the time of the fastest peer of a round over ours, over the rounds
  double bound_seconds = 0;  ///< what copying allows
};

/// Rounds that a class needs to be reported.
inline constexpr int least_rounds = 3;

/// Rounds in a class.
int rounds_in(const std::vector<Round>&, Distance);

/// Nothing if too few rounds were in the class.
std::optional<Comparison> summarize(const std::vector<Round>&,
                                    const std::vector<std::string>& names, Distance);

/// Iterations that fit into `slice` seconds at `cost` each, at least 1 and at most `most`.
int iterations_within(double slice, double cost, int most) noexcept;

}  // namespace treering::perf
