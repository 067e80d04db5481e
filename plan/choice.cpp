#include "plan/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

/// One-shot sends n-1 times the array, two-shot waits once more: they meet about here, per peer.
constexpr std::size_t one_shot_bytes = 64 * 1024;
/// A root that serves more peers than this by itself keeps them waiting.
constexpr int most_direct_peers = 4;
/// A block is worth its hand-shakes from here on.
constexpr std::size_t bytes_per_block = 256 * 1024;
/// Results beyond the caches' share are better stored past them.
constexpr std::size_t streaming_bytes = 4 * 1024 * 1024;

/// On a GPU LL saves two trips to memory a message, and costs twice the bytes: not measured yet, so about where
/// others change over.
constexpr std::size_t gpu_ll_bytes = 32 * 1024;

Algorithm automatic(const Situation& s) {
  const std::size_t peers = static_cast<std::size_t>(std::max(s.size - 1, 1));
  const bool small = s.bytes <= one_shot_bytes / peers;
  switch (s.collective) {
    case Collective::all_reduce:
      return s.size == 1 || small ? Algorithm::one_shot : Algorithm::two_shot;
    case Collective::broadcast:
    case Collective::reduce:
      return s.size - 1 <= most_direct_peers || small || s.deterministic ? Algorithm::direct
                                                                         : Algorithm::tree;
    default:
      return algorithms_of(s.collective).front();
  }
}

WireType automatic_wire(const Situation& s) {
  const bool good = s.gpu && has_wire(s.collective, WireType::ll) &&
                    !has_secret_sizes(s.collective) && s.bytes <= gpu_ll_bytes;
  return good ? WireType::ll : WireType::simple;
}

bool usable(const Situation& s, Algorithm algorithm) {
  return !s.deterministic || folds_at_once(s.collective, algorithm);
}

void require(const Situation& s, Algorithm algorithm) {
  const auto all = algorithms_of(s.collective);
  const bool exists = std::ranges::find(all, algorithm) != all.end();
  if (exists && usable(s, algorithm)) return;
  std::string names;
  for (const Algorithm a : all)
    if (usable(s, a)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(a));
  throw Error(ErrorCode::unsupported,
              exists ? fmt::format("algorithm {} adds on the way, which deterministic {} may not; "
                                   "there are: {}",
                                   name(algorithm), name(s.collective), names)
                     : fmt::format("algorithm {} does not exist for {}; there are: {}",
                                   name(algorithm), name(s.collective), names));
}

void require(const Situation& s, WireType wire) {
  if (has_wire(s.collective, wire)) return;
  std::string names;
  for (const WireType w : {WireType::simple, WireType::ll})
    if (has_wire(s.collective, w)) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(w));
  throw Error(ErrorCode::unsupported, fmt::format("wire {} does not exist for {}; there are: {}",
                                                  name(wire), name(s.collective), names));
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

bool folds_at_once(Collective collective, Algorithm algorithm) noexcept {
  return !reduces(collective) || (algorithm != Algorithm::ring && algorithm != Algorithm::tree);
}

Choice choose(const Situation& s, std::optional<Algorithm> forced, std::optional<WireType> wire) {
  if (forced) require(s, *forced);
  if (wire) require(s, *wire);
  Choice choice{};
  // A rank alone has no neighbour to hear from; the direct algorithms then just copy.
  choice.algorithm = forced && s.size > 1 ? *forced : automatic(s);
  choice.wire = wire.value_or(automatic_wire(s));
  const bool ll = choice.wire == WireType::ll;
  const std::size_t fits = (ll ? ll_capacity(s.shape) : s.shape.slot_bytes) / s.element_bytes;
  choice.chunk = fits >= cut_grain ? fits / cut_grain * cut_grain : fits;
  const std::size_t worth = std::max<std::size_t>(s.bytes / bytes_per_block, 1);
  const auto channels = static_cast<std::size_t>(s.channels);
  choice.blocks = static_cast<int>(s.all_channels ? channels : std::min(worth, channels));
  choice.streaming = s.bytes >= streaming_bytes;
  return choice;
}

}  // namespace treering
