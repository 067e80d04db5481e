#pragma once

// Ranks in words, for messages: "rank 3", "ranks 0–2, 5".

#include <cstddef>
#include <string>
#include <vector>

namespace treering {

/// `ranks` in ascending order. Three or more in a row become a range.
inline std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < i + 2) last = i;
    if (i != 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last != i) text += "–" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace treering
