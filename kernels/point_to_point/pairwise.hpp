#pragma once

// Send and receive, any number at a time. A *pass* goes over all operations of the rank and tries to
// advance each by one step, without waiting; passes follow until the operations of this call's batch
// are done. What a message takes depends on its length and on who reaches whose memory:
//
//     short       data ─► mail slot ─► buffer                    the send is done at once
//     reference   envelope ─►   buffer ◄─ data   ─► done         one copy, by the receiver
//     freight     envelope ─►   ◄─ ready   data ─► freight slots ─► buffer
//
// Receives are tried in the order in which they were posted, and find a peer's mail in the order in
// which it was sent.
//
// Why nothing waits for ever that should not: a reply has a line of its own, for as long as its
// message keeps its mail slot, so replies never wait. Freight is sent only for messages that a receive
// has matched, so whatever stands first in a freight lane has a buffer, and the next pass of its
// receiver takes it out. A matched message is therefore completed by passes of its two ranks, both of
// which make them: the send and the receive are not done. So a mail lane that is full stays so only
// while nobody receives what it holds. Each step needs only its own operation, and every pass tries
// every operation, so their order does not matter.
//
// On the host calls of one rank run side by side, and each makes passes over the operations of all:
// the turnstile lets one in at a time.

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"
#include "kernels/ops/fold.hpp"
#include "kernels/point_to_point/lookout.hpp"
#include "kernels/wire/lane_ends.hpp"
#include "kernels/wire/view.hpp"

namespace treering {

template <class Group>
class Pairwise {
 public:
  TREERING_DEVICE Pairwise(Group& group, const RankView& view, Batch& batch)
      : group_(group), view_(view), office_(*view.office), batch_(batch) {}

  TREERING_DEVICE void run() {
    if (group_.is_leader()) post();
    for (;;) {
      if (group_.is_leader()) group_.template shared<Step>() = await_step();
      group_.sync();
      const Step step = group_.template shared<Step>();
      if (step.operation == nullptr) break;
      copy(step);
      group_.settle_stores();
      group_.sync();
      if (!group_.is_leader()) continue;
      conclude(step);
      group_.leave(office_.turnstile);
    }
    if (group_.is_leader()) withdraw();
  }

 private:
  /// A copy that advances an operation. What follows it, conclude() knows.
  struct Step {
    Batch* batch;
    Operation* operation;  ///< null: there is nothing to do
    const std::byte* from;
    std::byte* to;
    std::uint64_t bytes;
    DataType type;
    bool streaming;
  };

  TREERING_DEVICE void copy(const Step& step) {
    if (step.bytes == 0) return;
    const Fold how{step.type, ReduceOp::sum, 1, step.streaming};
    fold_elements(
        group_, how, 1, [&](int) { return step.from; }, 1, [&](int) { return step.to; },
        step.bytes / size_of(step.type));
  }

  // ---- all that follows is for the leader

  /// The batch joins those under way, as the last.
  TREERING_DEVICE void post() {
    const Operation& first = batch_.operations[0];
    site_ = first.phase == Phase::wanted ? Site::mail : Site::reply;
    peer_ = first.peer;
    group_.enter(office_.turnstile);
    Batch** end = &office_.first;
    while (*end != nullptr) end = &(*end)->next;
    *end = &batch_;
    if (office_.batch == nullptr) office_.batch = &batch_;
    group_.leave(office_.turnstile);
  }

  /// It leaves them, if it was not completed.
  TREERING_DEVICE void withdraw() {
    if (finished()) return;
    group_.enter(office_.turnstile);
    if (!finished()) unlink(batch_);
    group_.leave(office_.turnstile);
  }

  TREERING_DEVICE void unlink(Batch& batch) {
    Batch** at = &office_.first;
    while (*at != &batch) at = &(*at)->next;
    *at = batch.next;
    if (office_.batch != &batch) return;
    office_.batch = batch.next;
    office_.operation = 0;
  }

  TREERING_DEVICE bool finished() const { return load_acquire(batch_.finished) != 0; }
  TREERING_DEVICE bool broken() const { return load_relaxed(*view_.broken) != 0; }

  /// The next step, of whichever operation, with the turnstile held; none when this batch is done
  /// or the communicator broken.
  TREERING_DEVICE Step await_step() {
    // While all goes well nobody waits, and so nobody looks.
    constexpr std::uint32_t look_every = 64;
    if (++steps_ % look_every == 0) look_around();
    for (std::uint32_t turn = 0; !finished() && !broken(); ++turn) {
      if (group_.try_enter(office_.turnstile)) {
        const Step step = find_step();
        if (step.operation != nullptr) return step;
        group_.leave(office_.turnstile);
        if (finished() || broken()) break;
      }
      if (group_.pause(site_, peer_, turn)) look_around();
    }
    return {};
  }

  /// Goes on with the pass. None after a whole pass in which nothing could be done.
  TREERING_DEVICE Step find_step() {
    for (bool idle = false; !idle && !broken();) {
      while (office_.batch != nullptr && !broken()) {
        Batch& batch = *office_.batch;
        if (office_.operation == batch.count) {
          office_.batch = batch.next;
          office_.operation = 0;
          continue;
        }
        const Step step = advance(batch, batch.operations[office_.operation++]);
        if (step.operation != nullptr) return step;
      }
      idle = !office_.moved;
      office_.moved = false;
      office_.batch = office_.first;
      office_.operation = 0;
      ++office_.pass;
    }
    return {};
  }

  TREERING_DEVICE Step advance(Batch& batch, Operation& operation) {
    switch (operation.phase) {
      case Phase::posting:
        return mail(batch, operation);
      case Phase::offered:
        return hear_reply(batch, operation);
      case Phase::streaming:
        return load_freight(batch, operation);
      case Phase::wanted:
        return match(batch, operation);
      case Phase::copying:
        return copy_piece(batch, operation);
      case Phase::arriving:
        return unload_freight(batch, operation);
      default:
        return {};
    }
  }

  /// After a step's copy: the flags that tell of it.
  TREERING_DEVICE void conclude(const Step& step) {
    Operation& operation = *step.operation;
    LaneEnds<Group> lanes = lanes_of(operation.peer);
    const Phase phase = operation.phase;
    note_progress();
    operation.moved += step.bytes;
    const bool all = operation.moved == operation.bytes;
    if (phase == Phase::posting) lanes.post_mail(operation);
    if (phase == Phase::streaming) lanes.post_freight(operation.number, step.bytes);
    if (phase == Phase::arriving) lanes.release_freight();
    if (!all) return;
    if (phase == Phase::copying) lanes.reply(operation.number, reply_done(operation.number));
    if (phase >= Phase::wanted) lanes.release_mail(operation.number);
    finish(*step.batch, operation);
  }

  TREERING_DEVICE void note_progress() {
    office_.moved = true;
    ++office_.progress;
  }

  TREERING_DEVICE void finish(Batch& batch, Operation& operation) {
    operation.phase = Phase::done;
    if (--batch.left != 0) return;
    unlink(batch);
    store_release(batch.finished, 1);  // whoever waits for it may free it now
  }

  // ---- sending

  TREERING_DEVICE Step mail(Batch& batch, Operation& operation) {
    LaneEnds<Group> lanes = lanes_of(operation.peer);
    if (!lanes.mail_has_room()) return {};
    if (operation.bytes <= office_.mail.slot_bytes)
      return step_of(batch, operation, operation.data, lanes.mail_slot(operation.bytes),
                     operation.bytes);
    lanes.post_mail(operation);
    operation.phase = Phase::offered;
    note_progress();
    return {};
  }

  TREERING_DEVICE Step hear_reply(Batch& batch, Operation& operation) {
    const std::uint64_t heard = lanes_of(operation.peer).hear_reply(operation.number);
    if (heard == 0) return {};
    note_progress();
    if (heard >= reply_done(operation.number)) return finish(batch, operation), Step{};
    operation.phase = Phase::streaming;
    return load_freight(batch, operation);
  }

  TREERING_DEVICE Step load_freight(Batch& batch, Operation& operation) {
    LaneEnds<Group> lanes = lanes_of(operation.peer);
    if (!lanes.freight_has_room()) return {};
    return step_of(batch, operation, operation.data + operation.moved, lanes.freight_slot(),
                   piece(operation));
  }

  // ---- receiving

  TREERING_DEVICE Step match(Batch& batch, Operation& operation) {
    if (operation.peer != wildcard) {
      const std::uint64_t number = lanes_of(operation.peer).find_mail(operation.tag);
      return number != 0 ? take(batch, operation, operation.peer, number) : Step{};
    }
    for (int i = 0; i < view_.size; ++i) {
      const int peer = (office_.next_source + i) % view_.size;
      const std::uint64_t number = lanes_of(peer).find_mail(operation.tag);
      if (number == 0) continue;
      office_.next_source = (peer + 1) % view_.size;
      return take(batch, operation, peer, number);
    }
    return {};
  }

  TREERING_DEVICE Step take(Batch& batch, Operation& operation, int peer, std::uint64_t number) {
    LaneEnds<Group> lanes = lanes_of(peer);
    lanes.take_mail(number);
    note_progress();
    operation.peer = peer;
    operation.number = number;
    const Post& post = lanes.mail(number);
    const Envelope envelope = read_envelope(post.word);
    operation.tag = envelope.tag;
    if (envelope.type != operation.type || post.bytes != operation.bytes)
      return reject(operation, envelope.type, post.bytes), Step{};
    if (operation.bytes <= office_.mail.slot_bytes)
      return step_of(batch, operation, lanes.mail_data(number, operation.bytes), operation.data,
                     operation.bytes);
    if (post.input != 0) {
      operation.from = resolve(view_, peer, post.input);
      operation.phase = Phase::copying;
      return copy_piece(batch, operation);
    }
    operation.phase = Phase::arriving;
    lanes.reply(number, reply_ready(number));
    return {};
  }

  TREERING_DEVICE Step copy_piece(Batch& batch, Operation& operation) {
    return step_of(batch, operation, operation.from + operation.moved,
                   operation.data + operation.moved, piece(operation));
  }

  TREERING_DEVICE Step unload_freight(Batch& batch, Operation& operation) {
    LaneEnds<Group> lanes = lanes_of(operation.peer);
    const Post* const post = lanes.find_freight(operation.number);
    if (post == nullptr) return {};
    return step_of(batch, operation, lanes.freight_data(), operation.data + operation.moved,
                   post->bytes);
  }

  // ---- small things

  TREERING_DEVICE LaneEnds<Group> lanes_of(int peer) { return {group_, office_, peer}; }
  TREERING_DEVICE std::uint64_t piece(const Operation& operation) const {
    const std::uint64_t left = operation.bytes - operation.moved, most = office_.freight.slot_bytes;
    return left < most ? left : most;
  }
  TREERING_DEVICE static Step step_of(Batch& batch, Operation& operation, const std::byte* from,
                                      std::byte* to, std::uint64_t bytes) {
    return {&batch, &operation, from, to, bytes, operation.type, operation.streaming};
  }

  // ---- when it goes wrong

  /// In a wait that drags on: at the abort word, and for peers that are gone. Unless another call of this
  /// rank is busy: then the next time.
  TREERING_DEVICE void look_around() {
    if (!group_.try_enter(office_.turnstile)) return;
    if (!finished() && !broken()) {
      const int gone = lookout_.surely_gone();
      if (load_relaxed(view_.abort->value) != 0)
        fail(Failure::aborted, view_.rank);
      else if (gone != wildcard)
        fail(lookout_.has_failed(gone) ? Failure::peer_failed : Failure::peer_closed, gone);
    }
    group_.leave(office_.turnstile);
  }

  /// The message that the receive matched has another type or length.
  TREERING_DEVICE void reject(const Operation& operation, DataType type, std::uint64_t bytes) {
    Misfit& misfit = view_.board->misfit;
    store_relaxed(misfit.sender, static_cast<std::uint64_t>(operation.peer));
    store_relaxed(misfit.receiver, static_cast<std::uint64_t>(view_.rank));
    store_relaxed(misfit.tag, static_cast<std::uint64_t>(operation.tag));
    store_relaxed(misfit.sent_type, static_cast<std::uint64_t>(type));
    store_relaxed(misfit.sent_bytes, bytes);
    store_relaxed(misfit.expected_type, static_cast<std::uint64_t>(operation.type));
    store_relaxed(misfit.expected_bytes, operation.bytes);
    store_release(misfit.valid, 1);
    fail(Failure::mismatch, operation.peer);
  }

  /// Ends all calls of this rank.
  TREERING_DEVICE void fail(Failure why, int peer) {
    store_relaxed(*view_.broken, ~std::uint64_t{0});
    Verdict& verdict = view_.verdicts[view_.channels];
    verdict.peer = static_cast<std::uint64_t>(peer);
    verdict.sequence = 0;
    store_release(verdict.failure, static_cast<std::uint64_t>(why));
    store_release(view_.board->failed.value, 1);
  }

  Group& group_;
  const RankView& view_;
  PostOffice& office_;
  Batch& batch_;
  Site site_ = Site::mail;  // what reports say that it waits for
  int peer_ = wildcard;
  std::uint32_t steps_ = 0;
  Lookout lookout_{view_, office_, batch_};
};

/// A call's batch is its output.
template <class Group>
TREERING_DEVICE void point_to_point_pairwise(Group& group, const RankView& view,
                                             const CallArgs& args) {
  Pairwise<Group>(group, view, *reinterpret_cast<Batch*>(args.output)).run();
}

}  // namespace treering
