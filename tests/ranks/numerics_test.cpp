// The error bounds of docs/numerics.md, on random data against sums in double, for every algorithm.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/ops/elements.hpp"
#include "perf/call.hpp"
#include "plan/choice.hpp"
#include "plan/trees.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

using Numbers = std::vector<double>;
using Bytes = std::vector<std::byte>;

/// The unit roundoffs of a type (0 if it is its own accumulator) and of the accumulator f32, and half
/// of the type's smallest number, by which quotients may miss besides.
struct Precision {
  DataType type;
  double u, least;
};
constexpr Precision precisions[] = {{DataType::f8e4m3, 0x1p-4, 0x1p-10},
                                    {DataType::f8e5m2, 0x1p-3, 0x1p-17},
                                    {DataType::f16, 0x1p-11, 0x1p-25},
                                    {DataType::bf16, 0x1p-8, 0x1p-134},
                                    {DataType::f32, 0, 0x1p-150}};
constexpr double a = 0x1p-24;

/// On its way to the result a contribution is rounded to the type `roundings` times at most, and
/// passes through so many additions in the accumulator.
struct Path {
  int roundings, additions;
};
Path path_of(Algorithm algorithm, int ranks) {
  switch (algorithm) {
    case Algorithm::ring:
      return {ranks - 1, ranks - 1};
    case Algorithm::tree:  // at each rank above it, which adds at most two children
      return {tree_depth(ranks), 2 * tree_depth(ranks)};
    case Algorithm::one_shot:
    case Algorithm::two_shot:
    case Algorithm::direct:
      return {1, ranks - 1};
    default:
      ADD_FAILURE() << "docs/numerics.md has no bound for " << name(algorithm);
      return {};
  }
}

/// How far a result may be from `sum`, given the sum of absolute values. `divisor`: of an average.
double bound(Path path, const Precision& p, double sum, double absolute, int divisor) {
  const int divisions = divisor > 1;
  const double before = std::expm1((path.roundings - 1) * std::log1p(p.u) +
                                   (path.additions + divisions) * std::log1p(a)) *
                        absolute / divisor;
  return before + p.u * (std::abs(sum) / divisor + before) + divisions * p.least;
}

/// Calls f with the element type of one of the types above.
template <class F>
void with_float(DataType type, F f) {
  with_reduction(type, ReduceOp::sum, [&]<class Element, class Op>(Element, Op) {
    if constexpr (std::is_same_v<typename Element::Accumulator, float>) f(Element{});
  });
}

Bytes encode(DataType type, const Numbers& numbers) {
  Bytes bytes(numbers.size() * size_of(type));
  with_float(type, [&]<class Element>(Element) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto stored = Element::narrow(static_cast<float>(numbers[i]));
      std::memcpy(&bytes[i * sizeof(stored)], &stored, sizeof(stored));
    }
  });
  return bytes;
}

Numbers decode(DataType type, const Bytes& bytes) {
  Numbers numbers(bytes.size() / size_of(type));
  with_float(type, [&]<class Element>(Element) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      typename Element::Stored stored;
      std::memcpy(&stored, &bytes[i * sizeof(stored)], sizeof(stored));
      numbers[i] = static_cast<double>(Element::widen(stored));
    }
  });
  return numbers;
}

class Numerics : public testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t count = 1003;

  /// One call on random data. Prints the largest error found, as a part of the bound.
  void check_bound(Collective collective, Algorithm algorithm, const Precision& p, ReduceOp op) {
    const bool scatters = collective == Collective::reduce_scatter;
    const std::size_t elements = scatters ? count * static_cast<std::size_t>(team_.size()) : count;
    std::vector<Bytes> in, out;
    Numbers sums(elements), absolutes(elements);
    std::uniform_real_distribution<double> numbers(-1, 1);
    for (int r = 0; r < team_.size(); ++r) {
      Numbers mine(elements);
      for (double& x : mine) x = numbers(random_);
      in.push_back(encode(p.type, mine));
      out.emplace_back(count * size_of(p.type));
      mine = decode(p.type, in.back());
      for (std::size_t i = 0; i < elements; ++i)
        sums[i] += mine[i], absolutes[i] += std::abs(mine[i]);
    }
    team_.each([&](Communicator& comm, CallOptions how) {
      how.algorithm = algorithm;
      const auto r = static_cast<std::size_t>(comm.rank());
      const Pattern pattern{collective, p.type, op, comm.size(), count, 0};
      make_call(comm, pattern, in[r].data(), out[r].data(), how);
    });

    const Path path = path_of(algorithm, team_.size());
    const int divisor = op == ReduceOp::avg ? team_.size() : 1;
    double largest = 0;
    for (int r = 0; r < team_.size(); ++r) {
      const Numbers results = decode(p.type, out[static_cast<std::size_t>(r)]);
      const std::size_t first = scatters ? count * static_cast<std::size_t>(r) : 0;
      for (std::size_t i = 0; i < count; ++i) {
        const double sum = sums[first + i];
        const double most = bound(path, p, sum, absolutes[first + i], divisor);
        const double error = std::abs(results[i] - sum / divisor);
        ASSERT_LE(error, most) << "rank " << r << ", element " << i << " of " << name(p.type);
        if (most > 0) largest = std::max(largest, error / most);
      }
    }
    EXPECT_GT(largest, 0) << "nothing was rounded";
    fmt::print("{} {} {} {}, {} ranks: largest error {:.2f} of the bound\n", name(collective),
               name(algorithm), name(p.type), name(op), team_.size(), largest);
  }

  Team team_{GetParam()};
  std::mt19937_64 random_{20261};
};

TEST_P(Numerics, ErrorsStayWithinTheirBounds) {
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter})
    for (const Algorithm algorithm : algorithms_of(collective))
      for (const Precision& p : precisions)
        for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
          check_bound(collective, algorithm, p, op);
          if (HasFatalFailure()) return;
        }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Numerics, testing::Values(2, 3, 5, 8, 16));

}  // namespace
}  // namespace treering::test
