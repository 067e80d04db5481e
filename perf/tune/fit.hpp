#pragma once

// From measured times to costs. Pure functions.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan/costs.hpp"

namespace treering::perf {

/// A size, and how much longer a call takes in one way than in another.
struct Comparison {
  std::size_t bytes;
  double ratio;
};

/// The least size from which on the one way is always faster, by more than noise; UINT64_MAX: it never is.
std::uint64_t crossover(std::span<const Comparison>);

/// Times in seconds at the first knots. Beyond those that were measured the way is never chosen.
Cost cost_from(std::span<const double> seconds);

}  // namespace treering::perf
