#pragma once

// Stale loads: what a block reads may lag behind what others have stored, as far as C++ and PTX
// allow it, which is until an acquire has seen the writer's release.
//
//     writer  │ store data ────────────── raise flag
//             │   time 7                    time 9: "knows all of mine up to 9, and what I know"
//     reader  │             load: old data             acquire flag, load: new data
//
// A *sector* is 32 bytes. Of each it is remembered which block stored there last, when, and what
// the sector held before: that is what every block reads which cannot know of the store. A block
// knows of its own stores, of all before it began, and of what it has acquired. All that is
// remembered lies in tables of fixed size: what is forgotten is fresh, never wrong.
//
// Flags themselves are never stale. Stores and flags of the host are not seen here: such flags make
// everything known.

#include <cstddef>
#include <cstdint>

#include "kernels/exec/simt/sanitizers.hpp"

namespace treering::simt {

/// What a block knows: by writer, up to when.
struct Knowledge {
  static constexpr int writers = 64;  ///< blocks that can be told apart at once
  static constexpr int nobody = -1;

  int self = nobody;
  std::uint64_t everyone = 0;  ///< all stores up to then
  std::uint64_t raised = 0;    ///< when this block last raised a flag
  std::uint64_t of[writers] = {};
};

class StaleMemory {
 public:
  StaleMemory();

  /// A block begins, and ends.
  void begin(Knowledge&);
  void end(Knowledge&);

  /// Before a store of at most 16 bytes that lie in one sector.
  void store(Knowledge&, const std::byte* address);
  /// After a load of such bytes: replaces them by older ones if the block cannot know better.
  void load(const Knowledge&, const std::byte* address, std::byte* value, std::size_t bytes) const;
  /// Before a release-store to a flag. `ordered` false: the store is relaxed, and tells nothing.
  void raise(Knowledge&, const std::uint64_t& flag, std::uint64_t value, bool ordered);
  /// After an acquire-load that gave `value`.
  void acquire(Knowledge&, const std::uint64_t& flag, std::uint64_t value) const;

 private:
  struct Sector;
  struct Release;
  Sector& sector_of(const std::byte*) const;
  Release& release_of(const std::uint64_t& flag) const;

  Sector* sectors_;
  Release* releases_;
  std::uint64_t now_ = 1;
  std::uint64_t free_ = ~std::uint64_t{0};  // numbers of writers
};

}  // namespace treering::simt
