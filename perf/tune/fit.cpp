#include "perf/tune/fit.hpp"

#include <algorithm>

namespace treering::perf {

std::uint64_t crossover(std::span<const Comparison> all) {
  constexpr double noise = 0.97;
  std::uint64_t least = UINT64_MAX;
  for (auto at = all.rbegin(); at != all.rend() && at->ratio < noise; ++at) least = at->bytes;
  return least;
}

Cost cost_from(std::span<const double> seconds) {
  Cost cost;
  cost.fill(longest_ns);
  for (std::size_t i = 0; i < seconds.size(); ++i) cost[i] = static_cast<float>(seconds[i] * 1e9);
  make_sane(cost);
  return cost;
}

}  // namespace treering::perf
