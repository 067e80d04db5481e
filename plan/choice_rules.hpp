#pragma once

// Choices that a user forces, as text (TREERING_CHOICE, CallOptions::choice):
//
//     all_reduce:0-64K=one_shot,64K-=two_shot/chunk128K;broadcast:tree
//
// For each collective ranges of bytes, from the first to before the last, each with what is forced there; a range may
// be left out: then all sizes. The first range that a size is in counts; sizes in none are free.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "treering/types.hpp"

namespace treering {

/// What is forced of one call. The rest is chosen.
struct Forced {
  std::optional<Algorithm> algorithm = {};
  std::optional<WireType> wire = {};
  std::optional<std::size_t> chunk = {};  ///< bytes of a message, at most a slot
  std::optional<bool> streaming = {};     ///< results bypass the caches
  std::optional<bool> streaming_slots = {};

  /// This, and from the other one what this leaves free.
  Forced or_else(const Forced& other) const;
};

class ChoiceRules {
 public:
  ChoiceRules() = default;  ///< nothing is forced
  /// Throws Error{invalid_argument} that names the place in the text, and what may stand there.
  static ChoiceRules parse(std::string_view text);

  /// What is forced for a collective, or its uneven kind, at a size: see Situation::bytes.
  Forced find(Collective, std::size_t bytes) const;

 private:
  struct Rule {
    Collective collective;
    std::size_t begin, end;  ///< bytes
    Forced forced;
  };
  std::vector<Rule> rules_;
};

}  // namespace treering
