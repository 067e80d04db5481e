#include "plan/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "plan/chunks.hpp"
#include "plan/ll_slots.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::array all_reduce{Algorithm::two_shot, Algorithm::one_shot, Algorithm::ring,
                                Algorithm::tree};
constexpr std::array direct_or_ring{Algorithm::direct, Algorithm::ring};
constexpr std::array rooted{Algorithm::direct, Algorithm::tree, Algorithm::ring};
constexpr std::array direct_only{Algorithm::direct};
constexpr std::array dissemination_only{Algorithm::dissemination};
constexpr std::array pairwise_only{Algorithm::pairwise};

bool usable(Collective collective, bool deterministic, Algorithm algorithm) {
  return !deterministic || folds_at_once(collective, algorithm);
}

void require_algorithm(Collective collective, bool deterministic, Algorithm algorithm) {
  const auto all = algorithms_of(collective);
  const bool exists = std::ranges::find(all, algorithm) != all.end();
  if (exists && usable(collective, deterministic, algorithm)) return;
  std::string names;
  for (const Algorithm a : all)
    if (usable(collective, deterministic, a))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name(a));
  throw Error(ErrorCode::unsupported,
              exists ? fmt::format("algorithm {} adds on the way, which deterministic {} may not; "
                                   "there are: {}",
                                   name(algorithm), name(collective), names)
                     : fmt::format("algorithm {} does not exist for {}; there are: {}",
                                   name(algorithm), name(collective), names));
}

void require_wire(Collective collective, WireType wire) {
  if (has_wire(collective, wire)) return;
  std::string names;
  for (const WireType w : {WireType::simple, WireType::ll})
    if (has_wire(collective, w)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(w));
  throw Error(ErrorCode::unsupported, fmt::format("wire {} does not exist for {}; there are: {}",
                                                  name(wire), name(collective), names));
}

}  // namespace

std::span<const Algorithm> algorithms_of(Collective collective) noexcept {
  switch (even(collective)) {
    case Collective::all_reduce:
      return all_reduce;
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return direct_or_ring;
    case Collective::broadcast:
    case Collective::reduce:
      return rooted;
    case Collective::barrier:
      return dissemination_only;
    case Collective::point_to_point:
      return pairwise_only;
    default:
      return direct_only;
  }
}

void require(Collective collective, bool deterministic, const Forced& forced) {
  if (forced.algorithm) require_algorithm(collective, deterministic, *forced.algorithm);
  if (forced.wire) require_wire(collective, *forced.wire);
}

bool folds_at_once(Collective collective, Algorithm algorithm) noexcept {
  return !reduces(collective) || (algorithm != Algorithm::ring && algorithm != Algorithm::tree);
}

namespace {

/// Where nothing is known of the others' sizes, LL is no good.
bool may_use(const Situation& s, const Forced& forced, const Way& way) {
  const WireType wire = way.path == Path::ll ? WireType::ll : WireType::simple;
  if (!usable(s.collective, s.deterministic, way.algorithm)) return false;
  if (forced.algorithm && way.algorithm != *forced.algorithm) return false;
  if (forced.wire) return wire == *forced.wire;
  return wire == WireType::simple || !has_secret_sizes(s.collective);
}

/// A way whose buffers are registered is the one before the same that is staged. Where it is not known what they are, the
/// mean of both counts; rings and trees are always staged.
double expected_time(const Situation& s, const Costs& costs, std::size_t i, const Position& at) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const double time = time_at(costs.of[i], at);
  if (ways[i].path == Path::direct) return s.registered.value_or(false) ? time : never;
  const bool can_be_direct =
      i > 0 && ways[i - 1] == Way{ways[i].collective, ways[i].algorithm, Path::direct};
  if (ways[i].path == Path::ll || !can_be_direct) return time;
  if (s.registered) return *s.registered ? never : time;
  return (time_at(costs.of[i - 1], at) + time) / 2;
}

Way cheapest(const Situation& s, const Costs& costs, const Forced& forced) {
  static constexpr auto ranges = [] {
    std::array<WayRange, collectives + 1> all{};
    for (std::size_t c = 0; c < all.size(); ++c) all[c] = ways_of(static_cast<Collective>(c));
    return all;
  }();
  // Barriers and messages have one way each.
  Way best{s.collective, algorithms_of(s.collective).front(), Path::staged};
  double least = std::numeric_limits<double>::infinity();
  const Position position = position_of(s.bytes);
  const WayRange range = ranges[static_cast<std::size_t>(s.collective)];
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (!may_use(s, forced, ways[i])) continue;
    const double time = expected_time(s, costs, i, position);
    if (time < least) best = ways[i], least = time;
  }
  return best;
}

/// A rank alone has no neighbour to hear from, and nobody to share the work with.
Way alone(const Situation& s, const Forced& forced) {
  const auto all = algorithms_of(s.collective);
  const bool ll = forced.wire == WireType::ll;
  return {s.collective, s.collective == Collective::all_reduce ? Algorithm::one_shot : all.front(),
          ll ? Path::ll : Path::staged};
}

/// Elements of a message.
std::size_t chunk_of(const Situation& s, bool ll, std::size_t wanted_bytes) {
  const std::size_t room = ll ? ll_capacity(s.shape) : s.shape.slot_bytes;
  const std::size_t fits = std::max(std::min(room, wanted_bytes) / s.element_bytes, std::size_t{1});
  return fits >= cut_grain ? fits / cut_grain * cut_grain : fits;
}

int blocks_of(const Situation& s, const Costs& costs) {
  if (s.all_channels) return s.channels;
  const std::size_t worth = std::max<std::size_t>(s.bytes / costs.block_bytes, 1);
  return static_cast<int>(std::min(worth, static_cast<std::size_t>(s.channels)));
}

}  // namespace

Choice choose(const Situation& s, const Costs& costs, const Forced& forced) {
  require(s.collective, s.deterministic, forced);
  const Way way = s.size > 1 ? cheapest(s, costs, forced) : alone(s, forced);
  const bool ll = way.path == Path::ll;
  return {
      .algorithm = way.algorithm,
      .wire = ll ? WireType::ll : WireType::simple,
      .chunk = chunk_of(s, ll, forced.chunk.value_or(costs.chunk_bytes)),
      .blocks = blocks_of(s, costs),
      .streaming = forced.streaming.value_or(s.bytes >= costs.streaming_bytes),
      .streaming_slots = forced.streaming_slots.value_or(s.bytes >= costs.slot_streaming_bytes)};
}

}  // namespace treering
