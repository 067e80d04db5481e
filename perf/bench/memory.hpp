#pragma once

// Buffers with guards, filled and checked with a Pattern.
//
//     memory:  | … | guard |<-- region: what one call may touch -->| guard | … |
//
// Contents are made in host memory, a piece at a time, and copied: so the same code serves every
// device.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "perf/patterns.hpp"
#include "treering/treering.hpp"

namespace treering::perf {

/// Bytes of one guard.
inline constexpr std::size_t guard_bytes = 256;

/// The bytes of one buffer that a call works on, each side guarded.
class Region {
 public:
  Region(std::byte* begin, std::size_t bytes) : begin_(begin), bytes_(bytes) {}

  std::byte* at(std::size_t offset) const { return begin_ + offset; }

  /// Writes the guards; the value differs from rank to rank, so that a guard does not pass for
  /// another.
  void guard(int rank) const;
  /// Guard bytes that have changed.
  std::uint64_t broken_guards(int rank) const;
  /// Fills everything between the guards with bytes that no result leaves unchanged.
  void poison() const;

  /// Elements [begin, begin + count) of the rank's input, written to `offset` bytes into the
  /// region, or compared with what is there: the number that differ.
  void write_input(const Pattern&, int rank, std::size_t begin, std::size_t count,
                   std::size_t offset) const;
  std::uint64_t changed_input(const Pattern&, int rank, std::size_t begin, std::size_t count,
                              std::size_t offset) const;
  /// Elements that differ from the rank's expected output, which starts at `offset`.
  std::uint64_t wrong_output(const Pattern&, int rank, std::size_t offset) const;

 private:
  std::byte* begin_;
  std::size_t bytes_;
};

/// Memory for regions of up to `bytes`, at any shift of up to `most_shift` bytes.
class Memory {
 public:
  static constexpr std::size_t most_shift = 64;

  /// A Buffer, or memory that Treering does not know as one: on a GPU of cudaMalloc. Throws
  /// Error{out_of_memory}.
  Memory(std::size_t bytes, bool registered);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  /// `bytes` that start `shift` bytes behind an address aligned to 256.
  Region region(std::size_t bytes, std::size_t shift) const;

 private:
  std::optional<Buffer> buffer_;
  std::byte* plain_ = nullptr;
};

}  // namespace treering::perf
