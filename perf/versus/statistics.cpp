#include "perf/versus/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace treering::perf {
namespace {

std::vector<Round> of_class(const std::vector<Round>& rounds, Distance distance) {
  std::vector<Round> some;
  std::copy_if(rounds.begin(), rounds.end(), std::back_inserter(some),
               [&](const Round& round) { return round.distance == distance; });
  return some;
}

template <class Value>
std::vector<double> values_of(const std::vector<Round>& rounds, Value value) {
  std::vector<double> values;
  for (const Round& round : rounds) values.push_back(value(round));
  return values;
}

bool always_there(const std::vector<Round>& rounds, std::size_t peer) {
  return std::all_of(rounds.begin(), rounds.end(),
                     [&](const Round& round) { return round.peers[peer].has_value(); });
}

/// Peers that missed a round do not count in any.
double fastest(const Round& round, const std::vector<std::size_t>& peers) {
  double best = *round.peers[peers.front()];
  for (const std::size_t peer : peers) best = std::min(best, *round.peers[peer]);
  return best;
}

}  // namespace

const char* name(Distance distance) noexcept { return distance == Distance::near ? "near" : "far"; }

std::optional<Distance> classify(double before, double after) noexcept {
  const bool first = before < near_below_seconds, second = after < near_below_seconds;
  if (first != second) return std::nullopt;
  return first ? Distance::near : Distance::far;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

Spread spread(const std::vector<double>& values) {
  return {quantile(values, 0.25), quantile(values, 0.5), quantile(values, 0.75)};
}

int rounds_in(const std::vector<Round>& rounds, Distance distance) {
  return static_cast<int>(of_class(rounds, distance).size());
}

std::optional<Comparison> summarize(const std::vector<Round>& rounds,
                                    const std::vector<std::string>& names, Distance distance) {
  const std::vector<Round> some = of_class(rounds, distance);
  if (some.size() < static_cast<std::size_t>(least_rounds)) return std::nullopt;
  Comparison c;
  c.distance = distance;
  c.rounds = static_cast<int>(some.size());
  c.dropped = static_cast<int>(std::count_if(rounds.begin(), rounds.end(), [](const Round& round) {
    return !round.distance.has_value();
  }));
  c.seconds = quantile(values_of(some, [](const Round& round) { return round.ours; }), 0.5);
  std::vector<std::size_t> there;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!always_there(some, i)) continue;
    there.push_back(i);
    const auto seconds = values_of(some, [&](const Round& round) { return *round.peers[i]; });
    const auto ratios =
        values_of(some, [&](const Round& round) { return *round.peers[i] / round.ours; });
    c.peers.push_back({names[i], quantile(seconds, 0.5), quantile(ratios, 0.5)});
  }
  if (there.empty()) return c;
  c.best_peer = std::min_element(c.peers.begin(), c.peers.end(), [](const auto& a, const auto& b) {
                  return a.ratio < b.ratio;
                })->name;
  c.ratio = spread(
      values_of(some, [&](const Round& round) { return fastest(round, there) / round.ours; }));
  return c;
}

int iterations_within(double slice, double cost, int most) noexcept {
  if (cost * most <= slice) return most;
  return std::max(1, static_cast<int>(slice / cost));
}

}  // namespace treering::perf
