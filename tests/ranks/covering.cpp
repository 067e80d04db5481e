#include "tests/ranks/covering.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <span>

namespace treering::test {
namespace {

constexpr std::size_t unset = SIZE_MAX;

/// Builds rows one after the other, each of which is to hold many pairs that are not yet covered: starting with one
/// such pair, dimensions in random order get the value that adds most pairs. The best of several such rows is taken.
class Generator {
 public:
  Generator(const Space& space, std::uint64_t seed)
      : space_(space), random_(seed), dimensions_(space.values.size()), first_(dimensions_ + 1) {
    for (std::size_t d = 0; d < dimensions_; ++d) first_[d + 1] = first_[d] + space.values[d];
    const std::size_t all = first_[dimensions_];
    together_.resize(all * all);
    missing_.resize(all * all);
    for_each_pair([&](std::size_t a, std::size_t x, std::size_t b, std::size_t y) {
      const bool fits = space.together(a, x, b, y);
      for (auto* table : {&together_, &missing_}) (*table)[at(a, x, b, y)] = fits;
    });
  }

  std::vector<Row> rows() {
    std::vector<Row> all;
    for_each_pair([&](std::size_t a, std::size_t x, std::size_t b, std::size_t y) {
      if (!missing_[at(a, x, b, y)]) return;
      Row start(dimensions_, unset);
      start[a] = x;
      start[b] = y;
      if (!can_be_completed(start)) return;
      all.push_back(best_from(start));
      cover(all.back());
    });
    std::ranges::shuffle(all, random_);
    return all;
  }

 private:
  static constexpr int candidates = 12;

  template <class F>
  void for_each_pair(F f) const {
    for (std::size_t a = 0; a < dimensions_; ++a)
      for (std::size_t b = a + 1; b < dimensions_; ++b)
        for (std::size_t x = 0; x < space_.values[a]; ++x)
          for (std::size_t y = 0; y < space_.values[b]; ++y) f(a, x, b, y);
  }
  std::size_t at(std::size_t a, std::size_t x, std::size_t b, std::size_t y) const {
    if (a > b) return at(b, y, a, x);
    return (first_[a] + x) * first_[dimensions_] + first_[b] + y;
  }

  bool fits(const Row& row, std::size_t dimension, std::size_t value) const {
    for (std::size_t d = 0; d < dimensions_; ++d)
      if (d != dimension && row[d] != unset && !together_[at(d, row[d], dimension, value)])
        return false;
    return true;
  }

  bool can_be_completed(Row row) const {
    const auto open = std::ranges::find(row, unset);
    if (open == row.end()) return true;
    const auto dimension = static_cast<std::size_t>(open - row.begin());
    for (std::size_t value = 0; value < space_.values[dimension]; ++value) {
      row[dimension] = unset;
      if (!fits(row, dimension, value)) continue;
      row[dimension] = value;
      if (can_be_completed(row)) return true;
    }
    return false;
  }

  /// Pairs not covered so far that a value would make with those that the row has.
  int gain(const Row& row, std::size_t dimension, std::size_t value) const {
    int pairs = 0;
    for (std::size_t d = 0; d < dimensions_; ++d)
      if (d != dimension && row[d] != unset) pairs += missing_[at(d, row[d], dimension, value)];
    return pairs;
  }

  Row best_from(const Row& start) {
    Row best;
    int most = -1;
    for (int i = 0; i < candidates; ++i) {
      Row row = start;
      const int pairs = complete(row);
      if (pairs > most) best = std::move(row);
      most = std::max(most, pairs);
    }
    return best;
  }

  /// Fills in the rest of a row that can be completed; returns the pairs gained.
  int complete(Row& row) {
    std::vector<std::size_t> order(dimensions_);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::shuffle(order, random_);
    int pairs = 0;
    for (const std::size_t dimension : order) {
      if (row[dimension] != unset) continue;
      pairs += choose(row, dimension);
    }
    return pairs;
  }

  /// Gives the row the value that gains most, a random one of several such.
  int choose(Row& row, std::size_t dimension) {
    std::vector<std::pair<int, std::size_t>> values;  // gain, value
    for (std::size_t value = 0; value < space_.values[dimension]; ++value)
      if (fits(row, dimension, value)) values.emplace_back(gain(row, dimension, value), value);
    std::ranges::shuffle(values, random_);
    std::ranges::stable_sort(values, std::greater{}, [](const auto& v) { return v.first; });
    for (const auto& [pairs, value] : values) {
      row[dimension] = value;
      if (can_be_completed(row)) return pairs;
    }
    return 0;  // not reached: the row can be completed
  }

  void cover(const Row& row) {
    for (std::size_t a = 0; a < dimensions_; ++a)
      for (std::size_t b = a + 1; b < dimensions_; ++b) missing_[at(a, row[a], b, row[b])] = false;
  }

  const Space& space_;
  std::mt19937_64 random_;
  std::size_t dimensions_;
  std::vector<std::size_t> first_;  ///< number of each dimension's first value among all values
  std::vector<bool> together_, missing_;  ///< of two values
};

}  // namespace

bool Space::holds(const Row& row) const {
  for (std::size_t a = 0; a < row.size(); ++a)
    for (std::size_t b = a + 1; b < row.size(); ++b)
      if (!together(a, row[a], b, row[b])) return false;
  return true;
}

std::uint64_t Space::product() const {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{1}, std::multiplies{});
}

std::vector<Row> pairwise_covering(const Space& space, std::uint64_t seed) {
  return Generator(space, seed).rows();
}

void for_each_row(const Space& space, const std::function<void(const Row&)>& visit) {
  Row row;
  const auto extend = [&](const auto& self) -> void {
    const std::size_t next = row.size();
    if (next == space.values.size()) return visit(row);
    for (std::size_t value = 0; value < space.values[next]; ++value) {
      const bool fits = [&] {
        for (std::size_t d = 0; d < next; ++d)
          if (!space.together(d, row[d], next, value)) return false;
        return true;
      }();
      if (!fits) continue;
      row.push_back(value);
      self(self);
      row.pop_back();
    }
  };
  extend(extend);
}

}  // namespace treering::test
