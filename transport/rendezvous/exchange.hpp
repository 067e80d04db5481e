#pragma once

// What the ranks tell each other at start: everyone's words go to rank 0, and all of them come
// back.
//
//     rank 1 ──┐                 ┌──► rank 1
//     rank 2 ──┼──► rank 0 ──────┼──► rank 2
//     rank 3 ──┘    all words    └──► rank 3

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/unique_fd.hpp"
#include "transport/rendezvous/deadline.hpp"
#include "transport/rendezvous/invitation.hpp"
#include "treering/error.hpp"

namespace treering {

/// One rank's end. All ranks call the same operations in the same order. When one cannot go on (it
/// reports a failure, ends, or does not come within the time-out) all throw the same Error, now or
/// in their next operation, and in every later one. Rank 0 serves the others within its own
/// operations, so it takes part in all of them. For one thread at a time. The object may be
/// destroyed as soon as its last operation has returned.
class Exchange {
 public:
  /// Returns when all `world_size` ranks have come. They may come in any order. `timeout` bounds
  /// this and every later operation; what `look` throws ends them at once. Throws Error: `invalid_argument` (rank out of range, or
  /// taken), `mismatch` (number of ranks, version of the library), `timeout` (names the ranks that
  /// have not come), `peer_lost`, `system`.
  static Exchange join(const Invitation&, int world_size, int rank,
                       std::chrono::milliseconds timeout, const Look& look = {});

  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  int rank() const noexcept;
  int size() const noexcept;

  /// Everyone's bytes, by rank; lengths may differ.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte>);

  /// Everyone's descriptor, by rank, as a duplicate of this rank's own; empty for those that passed
  /// -1. Each rank gets all of them, so ranks of one process had better pass one between them.
  std::vector<UniqueFd> all_gather_descriptors(int descriptor_or_minus_1);

  /// Returns when all ranks have called it.
  void barrier();

  /// This rank cannot go on: all others throw the error, with this rank's name before it. The
  /// caller's own operations do so too.
  void fail(const Error&);

 private:
  struct State;
  explicit Exchange(std::unique_ptr<State>) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace treering
