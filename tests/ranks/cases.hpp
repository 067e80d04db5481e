#pragma once

// The dimensions in which calls vary, for coverings and products: collective and algorithm, type, operator, size,
// number of ranks, in place or not, registered or not, alignment, root, wire.

#include "tests/ranks/covering.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {

/// The numbers of ranks that tests of whole calls run with.
inline constexpr int team_sizes[] = {1, 2, 3, 4, 5, 7, 8, 16};

/// All calls but barriers, in which nothing varies. Counts from 0 to `most`, which may be up to 400'009: counts
/// beyond 5000 are divided among the ranks, and need many slots.
class CallSpace {
 public:
  explicit CallSpace(std::vector<int> ranks, std::size_t most = 400'009);

  const Space& space() const { return space_; }
  int ranks_of(const Row&) const;
  /// The call that a row stands for, with data from that seed.
  Case case_of(const Row&, std::uint64_t seed) const;

 private:
  struct Way {
    Collective collective;
    std::optional<Algorithm> algorithm;
  };
  bool together(std::size_t a, std::size_t x, std::size_t b, std::size_t y) const;

  std::vector<Way> ways_;
  std::vector<int> ranks_;
  std::vector<std::size_t> counts_;
  Space space_;
};

/// Whether what takes hours is to run as well: TREERING_TEST_ALL=1, which `./dev test --all` sets.
bool everything();

}  // namespace treering::test
