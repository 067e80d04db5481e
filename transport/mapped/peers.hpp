#pragma once

// The arenas of peer processes, as seen from this one. A process maps each peer once, however many
// communicators, ranks and threads they share.

#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "base/unique_fd.hpp"
#include "transport/mapped/process.hpp"

namespace treering {

/// A peer's whole arena in this process's address space: offset x here is offset x there. If the
/// peer dies, the memory stays readable until this is destroyed.
class PeerMemory {
 public:
  /// Maps the arena behind `file`, and verifies that it is one. See attach().
  PeerMemory(UniqueFd file, std::size_t size);
  /// This process's own arena.
  PeerMemory();
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  std::byte* base() const noexcept { return base_; }
  std::size_t size() const noexcept { return size_; }

  /// Backs a part of an allocation that the peer made with Backing::later: a sender does so for the
  /// slots that it will fill. May be repeated. Thread-safe. Throws Error{out_of_memory}.
  void back(std::size_t offset, std::size_t bytes);

 private:
  UniqueFd file_;  // empty for the own arena
  int descriptor_;
  std::size_t size_;
  std::byte* base_;
  pid_t mapper_ = 0;  // 0: nothing to unmap
};

/// The arena of process `owner`, whose descriptor came by Exchange. Mapped at the first call, and
/// unmapped when the last owner lets go; the own process's is not mapped again. Thread-safe. Throws
/// Error{system} if the descriptor is no arena of `size` bytes, Error{out_of_memory} if it cannot
/// be mapped.
std::shared_ptr<PeerMemory> attach(const ProcessIdentity& owner, UniqueFd arena, std::size_t size);

}  // namespace treering
