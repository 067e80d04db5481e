#pragma once

// Which algorithm and wire a call uses. Pure functions of what all ranks know alike: never of what one rank
// sees.

#include <cstddef>
#include <optional>
#include <span>

#include "plan/choice_rules.hpp"
#include "plan/costs.hpp"
#include "plan/wire_shape.hpp"
#include "treering/types.hpp"

namespace treering {

/// The algorithms that a collective has, the default first.
std::span<const Algorithm> algorithms_of(Collective) noexcept;

/// What to choose by.
struct Situation {
  Collective collective;
  std::size_t bytes;  ///< of one rank's result, or of its input where that is larger
  std::size_t element_bytes;
  int size;
  int channels;                ///< blocks that may be used
  bool all_channels;           ///< use them all, whatever the size
  bool deterministic = false;  ///< only algorithms that fold all ranks at once, in rank order
  /// What the ranks say of their buffers (Options::registered); nothing: both kinds are counted on. Whether those of a
  /// call are registered, nobody knows of the others before it begins.
  std::optional<bool> registered = {};
  WireShape shape;
};

struct Choice {
  Algorithm algorithm;
  WireType wire;
  std::size_t chunk;  ///< elements of one message: at most a slot of that wire
  int blocks;
  bool streaming;        ///< results bypass the caches
  bool streaming_slots;  ///< so does what is stored in slots
};

/// Whether an algorithm adds up all ranks at once, in rank order, or does not add at all.
bool folds_at_once(Collective, Algorithm) noexcept;

/// Error{unsupported}, which lists what there is, if a collective does not have what is forced, or may not use it.
void require(Collective, bool deterministic, const Forced&);

/// The way that costs least. What is forced is used if the collective has it and it may be used; otherwise
/// Error{unsupported}, which lists what can be.
Choice choose(const Situation&, const Costs&, const Forced& forced = {});

}  // namespace treering
