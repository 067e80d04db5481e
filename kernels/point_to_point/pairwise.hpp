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
#include "kernels/wire/view.hpp"
#include "plan/mailbox.hpp"

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
    PeerLanes& lane = office_.lanes[operation.peer];
    const Phase phase = operation.phase;
    note_progress();
    operation.moved += step.bytes;
    const bool all = operation.moved == operation.bytes;
    if (phase == Phase::posting) post_mail(lane, operation);
    if (phase == Phase::streaming) post_freight(lane, operation, step.bytes);
    if (phase == Phase::arriving)
      group_.raise(Site::freight_credit, lane.freight.from.credit->value, ++lane.freight.received);
    if (!all) return;
    if (phase == Phase::copying) reply(lane, operation, reply_done(operation.number));
    if (phase >= Phase::wanted) release_mail(lane, operation.number);
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
    PeerLanes& lane = office_.lanes[operation.peer];
    if (lane.full == office_.pass) return {};
    if (!has_room(Site::mail_credit, lane.mail, office_.mail, lane.mail_credit)) {
      lane.full = office_.pass;
      return {};
    }
    if (operation.bytes <= office_.mail.slot_bytes) {
      const std::size_t slot = lane.mail.sent & (office_.mail.slots - 1);
      std::byte* to = operation.bytes <= inline_bytes
                          ? lane.mail.to.posts[slot].payload
                          : lane.mail.to.slots + slot * office_.mail.slot_bytes;
      return step_of(batch, operation, operation.data, to, operation.bytes);
    }
    post_mail(lane, operation);
    operation.phase = Phase::offered;
    note_progress();
    return {};
  }

  /// `known`: the latest credit that was read. Read anew, it may cost a cache miss.
  TREERING_DEVICE bool has_room(Site credit, const Edge& edge, WireShape shape,
                                std::uint64_t& known) {
    if (edge.sent - known < shape.slots) return true;
    known = load_relaxed(edge.to.credit->value);
    group_.acquire(credit, edge.to.credit->value);
    return edge.sent - known < shape.slots;
  }

  TREERING_DEVICE void post_mail(PeerLanes& lane, Operation& operation) {
    Post& post = lane.mail.to.posts[lane.mail.sent & (office_.mail.slots - 1)];
    post.word = envelope_word({operation.tag, operation.type});
    post.bytes = operation.bytes;
    post.input = operation.reference;
    operation.number = ++lane.mail.sent;
    group_.raise(Site::mail, post.step, operation.number);
  }

  TREERING_DEVICE Step hear_reply(Batch& batch, Operation& operation) {
    PeerLanes& lane = office_.lanes[operation.peer];
    const std::uint64_t& line = lane.replies[slot_of(operation)].value;
    const std::uint64_t heard = load_relaxed(line);
    if (heard < reply_ready(operation.number)) return {};
    group_.acquire(Site::reply, line);
    note_progress();
    if (heard >= reply_done(operation.number)) return finish(batch, operation), Step{};
    operation.phase = Phase::streaming;
    return load_freight(batch, operation);
  }

  TREERING_DEVICE Step load_freight(Batch& batch, Operation& operation) {
    PeerLanes& lane = office_.lanes[operation.peer];
    if (!has_room(Site::freight_credit, lane.freight, office_.freight, lane.freight_credit))
      return {};
    const std::size_t slot = lane.freight.sent & (office_.freight.slots - 1);
    return step_of(batch, operation, operation.data + operation.moved,
                   lane.freight.to.slots + slot * office_.freight.slot_bytes, piece(operation));
  }

  TREERING_DEVICE void post_freight(PeerLanes& lane, const Operation& operation,
                                    std::uint64_t bytes) {
    Post& post = lane.freight.to.posts[lane.freight.sent & (office_.freight.slots - 1)];
    post.word = operation.number;
    post.bytes = bytes;
    group_.raise(Site::freight, post.step, ++lane.freight.sent);
  }

  // ---- receiving

  TREERING_DEVICE Step match(Batch& batch, Operation& operation) {
    if (operation.peer != wildcard) {
      const std::uint64_t number = find_mail(office_.lanes[operation.peer], operation.tag);
      return number != 0 ? take(batch, operation, operation.peer, number) : Step{};
    }
    for (int i = 0; i < view_.size; ++i) {
      const int peer = (office_.next_source + i) % view_.size;
      const std::uint64_t number = find_mail(office_.lanes[peer], operation.tag);
      if (number == 0) continue;
      office_.next_source = (peer + 1) % view_.size;
      return take(batch, operation, peer, number);
    }
    return {};
  }

  /// The oldest mail with that tag that no receive has; 0 if there is none.
  TREERING_DEVICE std::uint64_t find_mail(PeerLanes& lane, std::int32_t tag) {
    look_for_mail(lane);
    for (std::uint64_t n = lane.mail.received + 1; n <= lane.arrived; ++n) {
      if ((lane.taken & bit(n)) != 0) continue;
      const Post& post = lane.mail.from.posts[(n - 1) & (office_.mail.slots - 1)];
      if (tag == wildcard || read_envelope(post.word).tag == tag) return n;
    }
    return 0;
  }

  /// Once a pass, so that a receive does not find what an earlier one should have found.
  TREERING_DEVICE void look_for_mail(PeerLanes& lane) {
    if (lane.seen == office_.pass) return;
    lane.seen = office_.pass;
    while (lane.arrived - lane.mail.received < office_.mail.slots) {
      const Post& next = lane.mail.from.posts[lane.arrived & (office_.mail.slots - 1)];
      if (load_relaxed(next.step) <= lane.arrived) return;
      group_.acquire(Site::mail, next.step);
      ++lane.arrived;
    }
  }

  TREERING_DEVICE Step take(Batch& batch, Operation& operation, int peer, std::uint64_t number) {
    PeerLanes& lane = office_.lanes[peer];
    lane.taken |= bit(number);
    note_progress();
    operation.peer = peer;
    operation.number = number;
    const std::size_t slot = slot_of(operation);
    const Post& post = lane.mail.from.posts[slot];
    const Envelope envelope = read_envelope(post.word);
    operation.tag = envelope.tag;
    if (envelope.type != operation.type || post.bytes != operation.bytes)
      return reject(operation, envelope.type, post.bytes), Step{};
    if (operation.bytes <= office_.mail.slot_bytes) {
      const std::byte* from = operation.bytes <= inline_bytes
                                  ? post.payload
                                  : lane.mail.from.slots + slot * office_.mail.slot_bytes;
      return step_of(batch, operation, from, operation.data, operation.bytes);
    }
    if (post.input != 0) {
      operation.from = resolve(view_, peer, post.input);
      operation.phase = Phase::copying;
      return copy_piece(batch, operation);
    }
    operation.phase = Phase::arriving;
    reply(lane, operation, reply_ready(number));
    return {};
  }

  TREERING_DEVICE Step copy_piece(Batch& batch, Operation& operation) {
    return step_of(batch, operation, operation.from + operation.moved,
                   operation.data + operation.moved, piece(operation));
  }

  TREERING_DEVICE Step unload_freight(Batch& batch, Operation& operation) {
    PeerLanes& lane = office_.lanes[operation.peer];
    const std::size_t slot = lane.freight.received & (office_.freight.slots - 1);
    const Post& post = lane.freight.from.posts[slot];
    if (load_relaxed(post.step) <= lane.freight.received) return {};
    group_.acquire(Site::freight, post.step);
    if (post.word != operation.number) return {};  // the first piece is another message's
    return step_of(batch, operation, lane.freight.from.slots + slot * office_.freight.slot_bytes,
                   operation.data + operation.moved, post.bytes);
  }

  TREERING_DEVICE void reply(PeerLanes& lane, const Operation& operation, std::uint64_t what) {
    group_.raise(Site::reply, lane.replies_to[slot_of(operation)].value, what);
  }

  /// The message is complete. Slots are given back in order.
  TREERING_DEVICE void release_mail(PeerLanes& lane, std::uint64_t number) {
    lane.through |= bit(number);
    const std::uint64_t before = lane.mail.received;
    for (std::uint64_t next; (lane.through & (next = bit(lane.mail.received + 1))) != 0;) {
      lane.through &= ~next;
      lane.taken &= ~next;
      ++lane.mail.received;
    }
    if (lane.mail.received != before)
      group_.raise(Site::mail_credit, lane.mail.from.credit->value, lane.mail.received);
  }

  // ---- small things

  TREERING_DEVICE static std::uint64_t bit(std::uint64_t number) {
    return std::uint64_t{1} << (number % most_mail_slots);
  }
  TREERING_DEVICE std::size_t slot_of(const Operation& operation) const {
    return (operation.number - 1) & (office_.mail.slots - 1);
  }
  TREERING_DEVICE std::uint64_t piece(const Operation& operation) const {
    const std::uint64_t left = operation.bytes - operation.moved, most = office_.freight.slot_bytes;
    return left < most ? left : most;
  }
  TREERING_DEVICE static Step step_of(Batch& batch, Operation& operation, const std::byte* from,
                                      std::byte* to, std::uint64_t bytes) {
    return {&batch, &operation, from, to, bytes, operation.type, operation.streaming};
  }

  // ---- when it goes wrong

  /// In a wait that drags on: at the abort word, and at the boards of those that the batch needs. A
  /// peer that is gone may have served us before: nothing must happen for a whole pass more.
  TREERING_DEVICE void look_around() {
    group_.enter(office_.turnstile);
    if (!finished() && !broken()) {
      if (load_relaxed(view_.abort->value) != 0) fail(Failure::aborted, view_.rank);
      const int gone = broken() ? wildcard : whoever_is_gone();
      const bool again = gone != wildcard && in_doubt_ && office_.progress == doubted_progress_;
      if (again && office_.pass > doubted_pass_ + 1)
        fail(is_raised(gone, &Board::failed) ? Failure::peer_failed : Failure::peer_closed, gone);
      if (!again) doubted_pass_ = office_.pass;
      doubted_progress_ = office_.progress;
      in_doubt_ = gone != wildcard;
    }
    group_.leave(office_.turnstile);
  }

  /// A peer without which the batch cannot be completed, and who has failed or left; or `wildcard`.
  TREERING_DEVICE int whoever_is_gone() const {
    for (int i = 0; i < batch_.count; ++i) {
      const Operation& operation = batch_.operations[i];
      if (operation.phase == Phase::done) continue;
      int gone = wildcard, left = 0;
      for (int peer = 0; peer < view_.size; ++peer) {
        if (peer == view_.rank || (operation.peer != wildcard && operation.peer != peer)) continue;
        if (is_raised(peer, &Board::failed)) return peer;
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
  // The latest look around.
  bool in_doubt_ = false;
  std::uint64_t doubted_progress_ = 0, doubted_pass_ = 0;
};

/// A call's batch is its output.
template <class Group>
TREERING_DEVICE void point_to_point_pairwise(Group& group, const RankView& view,
                                             const CallArgs& args) {
  Pairwise<Group>(group, view, *reinterpret_cast<Batch*>(args.output)).run();
}

}  // namespace treering
