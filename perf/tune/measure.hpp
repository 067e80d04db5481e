#pragma once

// What `treering tune` measures, as matches of contenders, and what follows from the results.

#include <span>
#include <string>
#include <vector>

#include "perf/bench/contest.hpp"
#include "plan/costs.hpp"

namespace treering::perf {

/// How data is best cut and stored: chunks first, then stores, at several sizes.
std::vector<Match> policy_matches(int ranks);
/// Sets these constants. `results`: of each match, of each contender.
void apply_policies(Costs&, std::span<const Match>, std::span<const std::vector<Result>> results);

/// Every way at every knot that is worth it, cut and stored by these costs' constants.
std::vector<Match> way_matches(const Costs& costs, int ranks);
void apply_ways(Costs&, std::span<const Match>, std::span<const std::vector<Result>> results);

}  // namespace treering::perf
