#pragma once

// The guard of one rank: abort, dead peers, and the error that a failed call becomes.
//
// Kernels only say that they gave up, and why (Verdict). The guard finds out what happened by
// reading all boards, so that every rank reports the same thing; puts the cause on its own board
// and raises everybody's abort word, which is how the news spreads; and keeps the error: a broken
// communicator stays broken.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kernels/wire/view.hpp"
#include "treering/error.hpp"

namespace treering {

class Guard {
 public:
  /// `boards`: every rank's, host addresses, null where unreadable; own is boards[rank].
  /// `verdicts`: control memory that this rank's kernels use. All outlive the guard, the peers'
  /// boards until close().
  Guard(int rank, std::vector<Board*> boards, std::span<Verdict> verdicts);

  /// Throws the error of this communicator, if a call failed or it was aborted. Thread-safe; may
  /// take half a second the first time, to hear all ranks.
  void check();

  /// Ends all ranks' waits. From any thread, at any time before close().
  void abort() noexcept;

  /// The same, because a call of this rank cannot be made: the others read why.
  void give_up(ErrorCode why) noexcept;

  /// A peer's process has ended: breaks the communicator unless the peer had left it in good order.
  /// From any thread.
  void lost(int peer) noexcept;

  /// From now on peers' boards are not touched.
  void close();

 private:
  /// Where the details of a mismatch are.
  enum class Detail : std::uint8_t {
    calls,    ///< the calls of that number, on all boards
    sizes,    ///< the SizeConflict on `rank`'s board
    message,  ///< the Misfit on `rank`'s board
  };
  struct Cause {
    ErrorCode code;
    int rank;                ///< who is to blame, where that means something
    std::uint64_t sequence;  ///< of the call, for a mismatch of calls; reported modulo 2³²
    Detail detail = Detail::calls;
  };
  static std::uint64_t encode(const Cause&);
  static Cause decode(std::uint64_t);

  int size() const { return static_cast<int>(boards_.size()); }
  Board* board(int rank) const;
  Board& own() const { return *boards_[static_cast<std::size_t>(rank_)]; }
  bool broken() const;
  void spread(const Cause&) noexcept;
  Cause find_cause();
  std::optional<Cause> known_cause() const;
  std::optional<Cause> announced_cause() const;
  std::optional<Cause> misfit() const;
  std::optional<Cause> size_conflict() const;
  std::optional<std::uint64_t> differing_call(std::uint64_t latest) const;
  bool boards_differ(std::uint64_t sequence) const;
  Error explain(const Cause&) const;
  Error explain_mismatch(const Cause&) const;
  Error explain_sizes(const Cause&) const;
  Error explain_misfit(int receiver) const;

  int rank_;
  std::vector<Board*> boards_;
  std::span<Verdict> verdicts_;
  std::atomic<int> lost_ = -1;
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;
  std::optional<Error> error_;
};

}  // namespace treering
