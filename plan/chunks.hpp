#pragma once

// How an array is cut up. A block works on one contiguous range; it goes through its range in
// rounds, and in each round `parts` chunks are on their way (for a ring: one per rank):
//
//     |<----- block 0 ----->|<----- block 1 ----->|
//     | round 0 | round 1 |r|
//     | 0 | 1 |2| 0 | 1 |2|…        parts = 3; a chunk is at most `chunk` elements: it fits a slot
//
// The last round is cut as evenly as the others, so its chunks are shorter; some may be empty.

#include <cstddef>
#include <cstdint>

#include "treering/types.hpp"

namespace treering {

/// A run of elements of an array.
struct Chunk {
  std::size_t begin, count;
};

/// Part `index` of `parts` of the run [begin, begin + count): cut at multiples of `grain` elements
/// from its begin, as evenly as that allows. Parts follow one another without gap; late ones may be
/// empty.
TREERING_PORTABLE constexpr Chunk part_of(Chunk whole, std::size_t index, std::size_t parts,
                                          std::size_t grain) {
  if (parts == 1) return whole;  // spares the shortest calls two divisions
  const std::size_t grains = (whole.count + grain - 1) / grain;
  const std::size_t each = grains / parts, more = grains % parts;  // the first `more` get one more
  const std::size_t first = (each * index + (index < more ? index : more)) * grain;
  const std::size_t size = (each + (index < more ? 1 : 0)) * grain;
  const std::size_t begin = first < whole.count ? first : whole.count;
  const std::size_t left = whole.count - begin;
  return {whole.begin + begin, size < left ? size : left};
}

/// Piece `index` of a run that is cut into pieces of `most` elements: the last is shorter, later ones are
/// empty.
TREERING_PORTABLE constexpr Chunk piece_of(Chunk whole, std::size_t index, std::size_t most) {
  const std::size_t done = index * most < whole.count ? index * most : whole.count;
  const std::size_t left = whole.count - done;
  return {whole.begin + done, left < most ? left : most};
}

/// How many pieces are not empty.
TREERING_PORTABLE constexpr std::size_t pieces_of(Chunk whole, std::size_t most) {
  return (whole.count + most - 1) / most;
}

/// Elements at which runs are cut where there is a choice: a line for any type of up to 8 bytes.
inline constexpr std::size_t cut_grain = 64;

/// One block's rounds through an array. An empty array still has one round, of empty chunks: every
/// call synchronises.
class Rounds {
 public:
  /// `range`: this block's; `parts` chunks of at most `chunk` elements a round.
  TREERING_PORTABLE constexpr Rounds(Chunk range, int parts, std::size_t chunk)
      : range_(range), parts_(static_cast<std::size_t>(parts)), chunk_(chunk), round_(cut(0)) {}

  TREERING_PORTABLE constexpr bool more() const { return more_; }
  TREERING_PORTABLE constexpr void next() {
    done_ += round_.count;
    more_ = done_ < range_.count;
    round_ = cut(done_);
  }

  /// Chunk number `index` (0 … parts-1) of this round.
  TREERING_PORTABLE constexpr Chunk chunk(int index) const {
    const bool coarse = chunk_ % cut_grain == 0 && round_.count >= parts_ * cut_grain;
    const std::size_t grain = coarse ? cut_grain : 1;
    return part_of(round_, static_cast<std::size_t>(index), parts_, grain);
  }

 private:
  TREERING_PORTABLE constexpr Chunk cut(std::size_t done) const {
    const std::size_t left = range_.count - done;
    const std::size_t most = chunk_ * parts_;
    return {range_.begin + done, left < most ? left : most};
  }

  Chunk range_;
  std::size_t parts_, chunk_;
  std::size_t done_ = 0;
  bool more_ = true;
  Chunk round_;
};

}  // namespace treering
