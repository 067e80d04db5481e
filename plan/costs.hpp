#pragma once

// What collectives cost, by algorithm and by how the data travels: the constants that choices are made by.
//
//     time │           ╱ two_shot     A cost is known at a few sizes, the knots; between two of them it is a
//          │     ╱╲_╱                 line: latency plus bytes over bandwidth, which changes where caches end.
//          │ ╱_╱   one_shot           Beyond the last knot the last line goes on.
//          └──┬────┬────┬─► bytes
//
// The constants were measured (`treering tune`), or follow from the textbook's formulas and some figures of
// an ordinary machine. Pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "treering/types.hpp"

namespace treering {

/// How data gets from rank to rank.
enum class Path : std::uint8_t {
  direct,  ///< over simple wires, where all buffers are registered
  staged,  ///< over simple wires, by way of slots
  ll       ///< over LL wires
};
inline constexpr int paths = 3;
const char* name(Path) noexcept;

/// A way to do a collective.
struct Way {
  Collective collective;
  Algorithm algorithm;
  Path path;
  friend constexpr bool operator==(const Way&, const Way&) = default;
};

/// Every way that may be chosen, but those of barriers, which have one. Of equals the first is chosen.
/// Rings and trees never access buffers directly.
inline constexpr auto ways = [] {
  using enum Collective;
  using enum Algorithm;
  constexpr struct {
    Collective collective;
    Algorithm algorithm;
  } algorithms[] = {{all_reduce, two_shot}, {all_reduce, one_shot},   {all_reduce, ring},
                    {all_reduce, tree},     {reduce_scatter, direct}, {reduce_scatter, ring},
                    {all_gather, direct},   {all_gather, ring},       {all_to_all, direct},
                    {broadcast, direct},    {broadcast, tree},        {broadcast, ring},
                    {reduce, direct},       {reduce, tree},           {reduce, ring},
                    {gather, direct},       {scatter, direct}};
  constexpr std::size_t staged_only = 8;  // rings and trees
  std::array<Way, std::size(algorithms) * paths - staged_only> all{};
  std::size_t next = 0;
  for (const auto& [collective, algorithm] : algorithms)
    for (const Path path : {Path::direct, Path::staged, Path::ll})
      if (path != Path::direct || (algorithm != ring && algorithm != tree))
        all[next++] = {collective, algorithm, path};
  return all;
}();

/// The ways of a collective, by number: from `begin` to before `end`.
struct WayRange {
  std::size_t begin, end;
};
constexpr WayRange ways_of(Collective collective) noexcept {
  WayRange range{0, 0};
  for (std::size_t i = 0; i < ways.size(); ++i)
    if (ways[i].collective == even(collective)) {
      if (range.end == 0) range.begin = i;
      range.end = i + 1;
    }
  return range;
}

/// Sizes in bytes at which costs are known: of a rank's larger buffer.
inline constexpr std::array<std::size_t, 12> knots{8,         64,       256,      1 << 10,
                                                   4 << 10,   16 << 10, 64 << 10, 256 << 10,
                                                   512 << 10, 1 << 20,  4 << 20,  16 << 20};

/// Time of one call at each knot, in ns.
using Cost = std::array<float, knots.size()>;

/// Where a size lies between two knots: found once for all costs that are compared.
struct Position {
  std::size_t left;  ///< the knot before it
  double part;       ///< of the way to the next; more than 1 beyond the last
};
Position position_of(std::size_t bytes) noexcept;

/// Time of a call of that size, in ns.
inline double time_at(const Cost& cost, const Position& at) noexcept {
  const double left = cost[at.left], right = cost[at.left + 1];
  return left + (right - left) * at.part;
}

/// All that a communicator chooses by. Travels between ranks as bytes.
struct Costs {
  std::uint64_t block_bytes;           ///< another block is worth its hand-shakes for each so many
  std::uint64_t chunk_bytes;           ///< of a message, where a slot has room for it
  std::uint64_t streaming_bytes;       ///< results of calls from this size on bypass the caches
  std::uint64_t slot_streaming_bytes;  ///< what is stored in slots does
  std::array<Cost, ways.size()> of;    ///< in the order of `ways`

  friend bool operator==(const Costs&, const Costs&) = default;
};

/// Whose figures the built-in costs are of.
enum class Machine : std::uint8_t { cpu, gpu };

/// Built-in costs for `ranks` ranks that share `cores` cores (which means nothing to GPUs). Those of GPUs were
/// never measured.
Costs default_costs(Machine, int ranks, int cores) noexcept;

/// At least 1 ns, at most an hour: a way of that cost is never chosen.
inline constexpr float shortest_ns = 1, longest_ns = 3.6e12F;
/// Makes times what they must be: within these limits, and none less than at the knot before.
void make_sane(Cost&) noexcept;

/// The file that holds costs of a host and a number of ranks.
std::string to_text(const Costs&, std::string_view host, int ranks);
/// Its inverse. Throws Error{invalid_argument} that says what is wrong with the text: of another version, host or
/// number of ranks, cut short, or no sane costs.
Costs parse_costs(std::string_view text, std::string_view host, int ranks);

}  // namespace treering
