#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "treering/treering.hpp"

namespace treering::test {

/// Poisoned memory with guard bytes on both sides, to see who writes where he should not.
class Guarded {
 public:
  /// `registered`: a Buffer of Treering's. `offset`: bytes off their alignment of 256.
  Guarded(std::size_t bytes, bool registered, std::size_t offset = 0);

  std::byte* data() { return base_ + begin_; }
  /// Nobody wrote beside it.
  bool intact() const;
  /// Nobody wrote into it either.
  bool untouched() const;

 private:
  std::optional<Buffer> shared_;
  std::vector<std::byte> own_;
  std::byte* base_;
  std::size_t begin_, bytes_;
};

}  // namespace treering::test
