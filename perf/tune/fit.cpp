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
  Cost cost{};
  for (std::size_t i = 0; i < cost.size(); ++i) {
    if (i < seconds.size()) {
      cost[i] = static_cast<float>(seconds[i] * 1e9);
    } else {
      const double slope =
          (seconds.back() - seconds[seconds.size() - 2]) * 1e9 /
          static_cast<double>(knots[seconds.size() - 1] - knots[seconds.size() - 2]);
      const auto more = static_cast<double>(knots[i] - knots[i - 1]);
      cost[i] = static_cast<float>(static_cast<double>(cost[i - 1]) + std::max(slope, 0.0) * more);
    }
  }
  make_sane(cost);
  return cost;
}

}  // namespace treering::perf
