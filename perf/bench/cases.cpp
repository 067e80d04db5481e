#include "perf/bench/cases.hpp"

#include <algorithm>
#include <limits>

#include "perf/patterns.hpp"

namespace treering::perf {
namespace {

std::vector<std::size_t> sizes(const Options& o) {
  std::vector<std::size_t> all;
  std::size_t size = o.min_bytes;
  while (size <= o.max_bytes) {
    all.push_back(size);
    const std::size_t room = std::numeric_limits<std::size_t>::max() - size;
    // A size of 0 does not grow by multiplication: 1 comes next.
    const std::size_t more = o.step_bytes > 0                    ? o.step_bytes
                             : size == 0                         ? 1
                             : size > room / (o.step_factor - 1) ? room
                                                                 : size * (o.step_factor - 1);
    if (more >= room) break;
    size += more;
  }
  return all;
}

/// True if a rank's buffers are cut into a share for each rank.
bool has_shares(Collective collective) {
  return collective != Collective::all_reduce && collective != Collective::broadcast &&
         collective != Collective::reduce;
}

Case make_case(Case c, std::size_t size, int ranks) {
  const std::size_t shares = has_shares(c.collective) ? static_cast<std::size_t>(ranks) : 1;
  c.count = size / size_of(c.type) / shares;
  c.bytes = most_elements(timed_pattern(c, ranks)) * size_of(c.type);
  return c;
}

}  // namespace

Pattern timed_pattern(const Case& c, int ranks) {
  return {.collective = c.collective,
          .type = c.type,
          .op = c.op,
          .ranks = ranks,
          .count = c.count,
          .seed = 1,
          .root = std::max(c.root, 0),
          .symmetric = true};
}

std::vector<Case> make_cases(const Options& o) {
  std::vector<Case> cases;
  for (const Collective collective : o.collectives) {
    if (collective == Collective::barrier) {
      cases.push_back({collective, DataType::u8, ReduceOp::sum, 0, 0});
      continue;
    }
    const auto ops = reduces(collective) ? o.ops : std::vector{ReduceOp::sum};
    const auto roots = has_root(collective) ? o.roots : std::vector{-1};
    for (const DataType type : o.types)
      for (const ReduceOp op : ops) {
        if (!applies(op, type)) continue;
        for (const int root : roots)
          for (const std::size_t size : sizes(o))
            cases.push_back(make_case({collective, type, op, 0, 0, root}, size, o.ranks));
      }
  }
  return cases;
}

double bus_factor(Collective collective, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * others;
    case Collective::broadcast:
    case Collective::reduce:
      return 1;
    case Collective::barrier:
      return 0;
    default:
      return others;
  }
}

const char* bus_formula(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "2(n-1)/n";
    case Collective::broadcast:
    case Collective::reduce:
      return "1";
    default:
      return "(n-1)/n";
  }
}

double bandwidth(std::size_t bytes, double seconds) {
  return bytes == 0 || seconds <= 0 ? 0 : static_cast<double>(bytes) / seconds / 1e9;
}

}  // namespace treering::perf
