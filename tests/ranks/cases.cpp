#include "tests/ranks/cases.hpp"

#include <cstdlib>
#include <string_view>

#include "plan/choice.hpp"

namespace treering::test {
namespace {

constexpr std::size_t all_counts[] = {0, 1, 3, 7, 64, 65, 1000, 4099, 400'009};
constexpr std::size_t many_slots = 5000;
constexpr std::size_t offsets[] = {0, 1, 3};
enum class Place { out, in };
enum class Memory { own, registered };
enum class Root { first, middle, last };

// A new dimension has its name here, in this order; its number of values in the constructor, what it does not go
// with in together(), and its field of the call in case_of().
enum Dimension : std::size_t { way, type, op, count, ranks, place, memory, offset, root, wire };

int root_rank(Root which, int size) {
  switch (which) {
    case Root::first:
      return 0;
    case Root::middle:
      return size / 2;
    default:
      return size - 1;
  }
}

}  // namespace

CallSpace::CallSpace(std::vector<int> ranks, std::size_t most) : ranks_(std::move(ranks)) {
  for (int i = 0; i < collectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (collective == Collective::barrier) continue;
    ways_.push_back({collective, {}});
    for (const Algorithm algorithm : algorithms_of(collective))
      ways_.push_back({collective, algorithm});
  }
  for (const std::size_t c : all_counts)
    if (c <= most) counts_.push_back(c);
  space_.values = {ways_.size(),       data_types, reduce_ops, counts_.size(), ranks_.size(), 2, 2,
                   std::size(offsets), 3,          wire_types};
  space_.together = [this](std::size_t a, std::size_t x, std::size_t b, std::size_t y) {
    return together(a, x, b, y);
  };
}

bool CallSpace::together(std::size_t a, std::size_t x, std::size_t b, std::size_t y) const {
  if (a == way && b == op)
    return reduces(ways_[x].collective) || static_cast<ReduceOp>(y) == ReduceOp::sum;
  if (a == type && b == op) return applies(static_cast<ReduceOp>(y), static_cast<DataType>(x));
  if (a == way && b == root)
    return has_root(ways_[x].collective) || static_cast<Root>(y) == Root::first;
  if (a == ranks && b == root) {  // roots that are the same rank are not told apart
    if (static_cast<Root>(y) == Root::middle) return ranks_[x] > 2;
    return static_cast<Root>(y) == Root::first || ranks_[x] > 1;
  }
  return true;
}

int CallSpace::ranks_of(const Row& row) const { return ranks_[row[ranks]]; }

Case CallSpace::case_of(const Row& row, std::uint64_t seed) const {
  const Way& how = ways_[row[way]];
  const int size = ranks_of(row);
  const std::size_t wanted = counts_[row[count]];
  const bool in_place = static_cast<Place>(row[place]) == Place::in;
  return {.pattern = {.collective = how.collective,
                      .type = static_cast<DataType>(row[type]),
                      .op = static_cast<ReduceOp>(row[op]),
                      .ranks = size,
                      .count = wanted < many_slots ? wanted : wanted / static_cast<unsigned>(size),
                      .seed = seed,
                      .root = root_rank(static_cast<Root>(row[root]), size),
                      .symmetric = in_place},
          .algorithm = how.algorithm,
          .wire = static_cast<WireType>(row[wire]),
          .in_place = in_place,
          .registered = static_cast<Memory>(row[memory]) == Memory::registered,
          .offset = offsets[row[offset]]};
}

bool everything() {
  const char* set = std::getenv("TREERING_TEST_ALL");
  return set != nullptr && std::string_view(set) == "1";
}

}  // namespace treering::test
