#pragma once

// The list of what is measured, and the arithmetic of its columns. All ranks work through the same
// list.

#include <cstddef>
#include <string>
#include <vector>

#include "perf/bench/options.hpp"
#include "perf/patterns.hpp"

namespace treering::perf {

struct Case {
  Collective collective;
  DataType type;
  ReduceOp op;        ///< counts only if the collective reduces
  std::size_t count;  ///< of the API's call: a rank's share where there are shares
  std::size_t bytes;  ///< the larger of a rank's send and receive buffers; 0 for a barrier
  int root = -1;      ///< -1: the collective has none
};

/// The data of the calls that are timed; uneven parts are the same in all of them.
Pattern timed_pattern(const Case&, int ranks);

/// Every collective, with every type, operator and size that makes a difference to it. Sizes are
/// rounded down to whole elements, the same number for each rank.
std::vector<Case> make_cases(const Options&);

/// Bytes that cross the busiest link per byte of `bytes`, in the best algorithm known; 0 for a
/// barrier.
double bus_factor(Collective, int ranks);
/// The same in words: "2(n-1)/n".
const char* bus_formula(Collective);

/// Bytes over seconds in GB/s, of 1e9; 0 if nothing was moved.
double bandwidth(std::size_t bytes, double seconds);

}  // namespace treering::perf
