#pragma once

// A process's shared memory: one large sparse file without a name, mapped whole. Peers map it whole
// as well, at start, so that allocating needs no exchange with them: offset x is the same memory
// for everyone.
//
//     0        4 KiB                                            size (64 GiB, say)
//     ┌────────┬──────────────┬───────┬─────────┬──────────────────┐
//     │ header │ allocation   │ hole  │ alloc…  │ hole: costs      │
//     │        │              │       │         │ nothing          │
//     └────────┴──────────────┴───────┴─────────┴──────────────────┘
//
// Memory is backed before it is used, so that exhaustion is an Error and not a SIGBUS, and given
// back to the machine on deallocation. Nothing is left behind when the process ends, however it
// ends.

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "base/unique_fd.hpp"

namespace treering {

/// Stands at the beginning of every arena, so that whoever maps one can tell.
struct ArenaHeader {
  std::array<char, 16> magic;
  std::uint64_t size;
};
inline constexpr std::array<char, 16> arena_magic{"treering arena1"};

/// When an allocation gets its memory.
enum class Backing : std::uint8_t {
  now,   ///< all of it, at once
  later  ///< part by part, by back(); parts that are not backed must not be touched
};

class Arena {
 public:
  struct Allocation {
    std::byte* begin;
    std::size_t bytes;
  };

  /// `bytes` of address space, which cost nothing. Throws Error if the machine refuses (limits).
  explicit Arena(std::size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Zeroed memory, aligned to 256 bytes, at least one byte; no page is shared with another
  /// allocation. Successive allocations start at different offsets within 4 KiB: buffers that are a
  /// multiple of 4 KiB apart alias in the cache's tags. Thread-safe. Throws Error{out_of_memory};
  /// Error{unsupported} in a process that was forked from the arena's owner.
  void* allocate(std::size_t bytes, Backing backing = Backing::now);

  /// Gives the memory back to the machine. Null is ignored, and so is everything in a forked child.
  /// Thread-safe.
  void deallocate(void* pointer) noexcept;

  /// Backs the pages of `bytes` bytes at `pointer` in an allocation made with Backing::later. May
  /// be repeated. Thread-safe. Throws as allocate() does.
  void back(const void* pointer, std::size_t bytes);

  /// True if all of these bytes lie in the arena, allocated or not.
  bool contains(const void* pointer, std::size_t bytes) const noexcept;

  /// The live allocation around `pointer`, if there is one. Thread-safe.
  std::optional<Allocation> allocation_of(const void* pointer) const;

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }
  /// The file, to be handed to peers.
  int descriptor() const noexcept { return file_.get(); }

 private:
  // A child does not inherit the mapping: what it would write there, its parent's peers would see.
  void refuse_in_forked_child() const;
  std::size_t take(std::size_t bytes);
  std::size_t forget(std::size_t offset);
  void give_back(std::size_t offset, std::size_t bytes) noexcept;
  void add_hole(std::size_t first, std::size_t length);
  std::size_t next_colour();

  const std::size_t size_;
  const pid_t owner_;
  UniqueFd file_;
  std::byte* base_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> holes_;  // first byte → length, in whole pages; never adjacent
  std::map<std::size_t, std::size_t> live_;  // first byte → bytes that were asked for
  unsigned colour_;
};

/// This process's arena, made by the first call with `bytes` of address space (0:
/// default_arena_size()). Lives until the process ends. Throws as Arena() does.
Arena& process_arena(std::size_t bytes = 0);

/// 64 GiB or twice the machine's memory, but at most 256 GiB, so that hundreds of processes can map
/// one another, and no more than the limit on file sizes.
std::size_t default_arena_size();

/// Backs the pages around bytes [offset, offset + bytes) of an arena's file, this process's or a
/// peer's. What is backed already stays as it is. Throws Error{out_of_memory}.
void back_pages(int arena, std::size_t offset, std::size_t bytes);

/// Maps pages that are backed into this process now, so that touching them first costs no fault each.
void map_pages(const std::byte* begin, std::size_t bytes) noexcept;

}  // namespace treering
