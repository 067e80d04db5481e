#pragma once

// Test data whose result is known exactly, whatever the order in which ranks are combined.
//
//     fill_input(p, rank, …)  ──►  collective  ──►  count_wrong(p, rank, …) == 0
//
// Every element of every rank is drawn from a hash of (seed, rank, index). All arithmetic on the
// expected side is done in integers, so it shares nothing with the kernels that it judges:
//
//     moved          any bits at all, NaN included
//     integers       any bits; sums and products wrap, avg divides the wrapped sum toward zero.
//                    Factors and scales are odd, so that a product keeps its information
//     float sum      small multiples of 1/8, so small that every partial sum of every subset is
//                    representable
//     float avg      the same; the exact sum is divided in the accumulator and rounded to the type
//     premul_sum     floats: the contributions are those of a sum, and scales powers of two with signs
//     float prod     powers of two with signs; one rank's factor alone has a full significand
//     min, max       any finite value, subnormals included; −0 < +0
//     bits           and, or: a quarter of the bits of four ranks decide; xor: any
//     bool           any bytes; all but zero are true
//
// Where ranks are many, only some of them contribute more than the neutral element to one sum or
// product of floats, or to bits and truth; which ones depends on the index.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "treering/types.hpp"

namespace treering {

/// One call's data. `count` is the count of the API's call; with uneven parts, their average or so. `op` and
/// `root` count only for collectives that reduce or have a root.
struct Pattern {
  Collective collective;
  DataType type;
  ReduceOp op;
  int ranks;
  std::size_t count;
  std::uint64_t seed;
  int root = 0;
  /// all_to_all_v: as much to each rank as from it, which a call in place needs.
  bool symmetric = false;
};

/// Elements that `from` brings and `to` gets in collectives where each rank has a part: `count`, or with
/// uneven parts anything from 0 to 2 × `count`.
std::size_t part_count(const Pattern&, int from, int to) noexcept;
/// What `rank` sends to each rank, and what it gets from each: the counts that a call with uneven parts takes.
std::vector<std::size_t> sent_counts(const Pattern&, int rank);
std::vector<std::size_t> received_counts(const Pattern&, int rank);
/// Elements of a rank's input and output; 0 where it has none, as most ranks of a call with a root.
std::size_t input_elements(const Pattern&, int rank) noexcept;
std::size_t output_elements(const Pattern&, int rank) noexcept;
/// The most that any rank has of both.
std::size_t most_elements(const Pattern&) noexcept;
/// Where a call in place has its input and its output within the one buffer, in elements from its
/// begin.
std::size_t in_place_input(const Pattern&, int rank) noexcept;
std::size_t in_place_output(const Pattern&, int rank) noexcept;

/// One element of a rank's input or of its expected output, in the low bytes (little-endian) of the
/// word.
std::uint64_t input_bits(const Pattern&, int rank, std::size_t index);
std::uint64_t expected_bits(const Pattern&, int rank, std::size_t index);

/// The scale that a rank passes to a premul_sum; 1 for other operators.
double pattern_scale(const Pattern&, int rank);

/// Writes elements [begin, begin + count) of a rank's input or expected output to `destination`,
/// which may have any alignment. Thread-safe. Deterministic: the same on every machine.
void fill_input(const Pattern&, int rank, std::size_t begin, std::size_t count, void* destination);
void fill_expected(const Pattern&, int rank, std::size_t begin, std::size_t count,
                   void* destination);

/// How many of the elements [begin, begin + count), found at `actual`, differ in any bit from the
/// expected output, or from the input (which a call out of place must leave alone).
std::size_t count_wrong(const Pattern&, int rank, std::size_t begin, std::size_t count,
                        const void* actual);
std::size_t count_changed(const Pattern&, int rank, std::size_t begin, std::size_t count,
                          const void* actual);

}  // namespace treering
