#pragma once

// Whether a batch of messages can still be completed: who has failed or left, of those that it needs.

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"
#include "kernels/wire/view.hpp"

namespace treering {

/// For the leader that holds the turnstile.
class Lookout {
 public:
  TREERING_DEVICE Lookout(const RankView& view, const PostOffice& office, const Batch& batch)
      : view_(view), office_(office), batch_(batch) {}

  /// A peer that is gone, or `wildcard`. It may have served us before: so only if nothing has happened
  /// for a whole pass after it was found gone.
  TREERING_DEVICE int surely_gone() {
    const int gone = whoever_is_gone();
    const bool again = gone != wildcard && in_doubt_ && office_.progress == doubted_progress_;
    if (again && office_.pass > doubted_pass_ + 1) return gone;
    if (!again) doubted_pass_ = office_.pass;
    doubted_progress_ = office_.progress;
    in_doubt_ = gone != wildcard;
    return wildcard;
  }
  TREERING_DEVICE bool has_failed(int peer) const { return is_raised(peer, &Board::failed); }

 private:
  /// A peer without which the batch cannot be completed, and who has failed or left; or `wildcard`.
  TREERING_DEVICE int whoever_is_gone() const {
    for (int i = 0; i < batch_.count; ++i) {
      const Operation& operation = batch_.operations[i];
      if (operation.phase == Phase::done) continue;
      int gone = wildcard, left = 0;
      for (int peer = 0; peer < view_.size; ++peer) {
        if (peer == view_.rank || (operation.peer != wildcard && operation.peer != peer)) continue;
        if (has_failed(peer)) return peer;
        if (is_raised(peer, &Board::closed)) gone = peer, ++left;
      }
      if (gone != wildcard && (operation.peer != wildcard || left == view_.size - 1)) return gone;
    }
    return wildcard;
  }

  TREERING_DEVICE bool is_raised(int peer, Flag Board::*flag) const {
    const Board* board = view_.boards[peer];
    return board != nullptr && load_acquire((board->*flag).value) != 0;
  }

  const RankView& view_;
  const PostOffice& office_;
  const Batch& batch_;
  // The latest look.
  bool in_doubt_ = false;
  std::uint64_t doubted_progress_ = 0, doubted_pass_ = 0;
};

}  // namespace treering
