#pragma once

// One block's share of one call: the group, the communicator and the arguments; publishes the call
// on the board, waits, and remembers failure.
//
// Failure is sticky, in this call and in those that are queued behind it. Once a wait has ended
// badly, `ok()` is false for all threads of the block alike and every later wait, fold and flag
// does nothing, so that kernels need no error handling.

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/group.hpp"
#include "kernels/ops/fold.hpp"
#include "kernels/wire/view.hpp"
#include "plan/chunks.hpp"

namespace treering {

/// What a fold means to the call's reduction.
struct Reduction {
  int own = -1;       ///< which source is this rank's own input, if one is
  bool last = false;  ///< the fold completes the reduction
};

template <class Group, WireType wire_type = WireType::simple>
class Call {
 public:
  using Threads = Group;
  static constexpr WireType wire = wire_type;

  TREERING_DEVICE Call(Group& group, const RankView& view, const CallArgs& args)
      : group_(group),
        view_(view),
        args_(args),
        sequence_(view.sequence[group.block()] + 1),
        word_(call_word(sequence_, args.hash)) {
    const std::uint64_t broken = load_relaxed(*view.broken);
    ok_ = broken == 0 || broken == sequence_;  // by another block of this call
    if (ok_ && group.is_leader() && group.block() == 0) publish(*view.board, word_, args.call);
  }

  /// Ends the call; the counters stay behind for the next one. Channels that this call does not use
  /// are counted by block 0.
  TREERING_DEVICE void finish() {
    group_.sync();
    if (!group_.is_leader()) return;
    view_.sequence[group_.block()] = sequence_;
    store_relaxed(view_.verdicts[group_.block()].direct, direct_ ? 1 : 0);
    if (group_.block() != 0) return;
    for (int unused = group_.blocks(); unused < view_.channels; ++unused)
      view_.sequence[unused] = sequence_;
  }

  TREERING_DEVICE Group& group() const { return group_; }
  TREERING_DEVICE const RankView& view() const { return view_; }
  TREERING_DEVICE const CallArgs& args() const { return args_; }
  TREERING_DEVICE int rank() const { return view_.rank; }
  TREERING_DEVICE int size() const { return view_.size; }
  TREERING_DEVICE int root() const { return args_.call.root; }
  TREERING_DEVICE std::uint64_t word() const { return word_; }
  TREERING_DEVICE bool ok() const { return ok_; }

  TREERING_DEVICE Edge& edge(int peer) const { return view_.edges[edge_number(peer)]; }
  TREERING_DEVICE LlEdge& ll_edge(int peer) const { return view_.ll_edges[edge_number(peer)]; }

  /// An array of as many elements as the call's `count`.
  TREERING_DEVICE Chunk whole() const { return {0, args_.call.count}; }
  /// A rank's part of the input or output, where that holds one for each rank.
  TREERING_DEVICE Chunk input_part(int rank) const { return part(args_.input_parts, rank); }
  TREERING_DEVICE Chunk output_part(int rank) const { return part(args_.output_parts, rank); }

  /// The share of an array that this block works on.
  TREERING_DEVICE Chunk share(Chunk array) const {
    return part_of(array, static_cast<std::size_t>(group_.block()),
                   static_cast<std::size_t>(group_.blocks()), cut_grain);
  }
  /// The same, in rounds of `parts` chunks that each fit a message.
  TREERING_DEVICE Rounds rounds(Chunk array, int parts) const {
    return Rounds(share(array), parts, args_.call.chunk);
  }
  /// What a round moves of an array where each round moves a message of every part.
  TREERING_DEVICE Chunk piece(Chunk array, std::size_t round) const {
    return piece_of(share(array), round, args_.call.chunk);
  }
  /// Rounds until all ranks' parts of the input or output are through.
  TREERING_DEVICE std::size_t input_rounds() const { return rounds_of(args_.input_parts); }
  TREERING_DEVICE std::size_t output_rounds() const { return rounds_of(args_.output_parts); }

  /// Address of an element of the input or output.
  TREERING_DEVICE const std::byte* input(std::size_t element) const {
    return args_.input + bytes(element);
  }
  TREERING_DEVICE std::byte* output(std::size_t element) const {
    return args_.output + bytes(element);
  }
  TREERING_DEVICE std::size_t bytes(std::size_t elements) const {
    return elements * size_of(args_.call.type);
  }
  TREERING_DEVICE std::size_t bytes(Chunk chunk) const { return bytes(chunk.count); }

  /// By the leader, between two barriers: polls `flag` until it is at least `value`, and returns it. On
  /// mismatch, a broken or closed peer, or abort the call fails, at all threads' next agree().
  TREERING_DEVICE std::uint64_t poll(Site site, int peer, const std::uint64_t& flag,
                                     std::uint64_t value) {
    std::uint64_t seen = 0;
    poll(site, peer, [&] { return (seen = load_relaxed(flag)) >= value; });
    if (group_.is_leader() && ok_) group_.acquire(site, flag);
    return seen;
  }
  /// The same for anything that comes true and stays so.
  template <class Condition>
  TREERING_DEVICE void poll(Site site, int peer, Condition done) {
    if (!group_.is_leader() || !ok_) return;
    for (std::uint32_t turn = 0; !done(); ++turn)
      if (group_.pause(site, peer, turn) && !may_go_on(done, peer)) return;
  }

  /// By the leader: the call has failed because of `peer`.
  TREERING_DEVICE void fail(Failure why, int peer) {
    ok_ = false;
    store_relaxed(*view_.broken, sequence_);
    Verdict& verdict = view_.verdicts[group_.block()];
    verdict.peer = static_cast<std::uint64_t>(peer);
    verdict.sequence = sequence_;
    store_release(verdict.failure, static_cast<std::uint64_t>(why));
    store_release(view_.board->failed.value, 1);
  }

  /// By any thread, where all wait: this one sees that the call has failed or was aborted.
  TREERING_DEVICE void give_up() {
    if (group_.is_leader())
      fail(Failure::aborted, view_.rank);
    else
      ok_ = false;
  }

  /// By the leader: the call has failed, since `sender`, which is the peer or this rank, sends `sent` bytes, and the other
  /// of the two expects `expected`. It stands where everybody can read it: nobody else knows. All blocks find the same.
  TREERING_DEVICE void fail_of_sizes(int peer, int sender, std::uint64_t sent,
                                     std::uint64_t expected) {
    SizeConflict& conflict = view_.board->conflict;
    store_relaxed(conflict.sender, static_cast<std::uint64_t>(sender));
    store_relaxed(conflict.receiver, static_cast<std::uint64_t>(sender == peer ? rank() : peer));
    store_relaxed(conflict.sent, sent);
    store_relaxed(conflict.expected, expected);
    store_relaxed(conflict.call, sequence_);
    fail(Failure::sizes, peer);
  }

  /// By the leader: the bytes that this rank sends the peer must be what that expects, and the other way round, or one
  /// of the two would write beyond the other's memory.
  TREERING_DEVICE void require_fit(int peer, std::uint64_t sent, std::uint64_t they_expect,
                                   std::uint64_t they_send, std::uint64_t expected) {
    if (they_send != expected)
      fail_of_sizes(peer, peer, they_send, expected);
    else if (they_expect != sent)
      fail_of_sizes(peer, rank(), sent, they_expect);
  }

  /// For the report: whether buffers are accessed directly.
  TREERING_DEVICE void note_direct(bool direct) { direct_ = direct && wire == WireType::simple; }

  /// Barrier at which all threads learn whether all waits went well. Returns ok().
  TREERING_DEVICE bool agree() {
    const bool mine = ok_;
    ok_ = !group_.any(!ok_);
    if constexpr (wire == WireType::ll)
      if (mine && !ok_ && group_.is_leader()) fail(Failure::aborted, view_.rank);
    return ok_;
  }

  /// Everything this block stored before is complete: the leader may raise flags.
  TREERING_DEVICE void complete() {
    group_.settle_stores();
    group_.sync();
  }

  /// Where all threads post and release, they read the wires' counters, which the leader moves on at the
  /// next wait: open_flags() comes with the former, close_flags(), a barrier if need be, with the latter.
  TREERING_DEVICE void open_flags() { open_ = true; }
  TREERING_DEVICE void close_flags() {
    if (open_) group_.sync();
    open_ = false;
  }

  /// Copies or reduces; see fold.hpp.
  template <class SourceOf, class DestinationOf>
  TREERING_DEVICE void fold(int sources, SourceOf source, int destinations,
                            DestinationOf destination, std::size_t count,
                            Reduction reduction = {}) const {
    apply(sources, source, destinations, destination, count, reduction, args_.streaming_slots);
  }

  /// The same where all destinations are results, which nobody reads soon: large ones bypass the
  /// caches.
  template <class SourceOf, class DestinationOf>
  TREERING_DEVICE void fold_out(int sources, SourceOf source, int destinations,
                                DestinationOf destination, std::size_t count,
                                Reduction reduction = {}) const {
    apply(sources, source, destinations, destination, count, reduction, args_.streaming);
  }

 private:
  template <class SourceOf, class DestinationOf>
  TREERING_DEVICE void apply(int sources, SourceOf source, int destinations,
                             DestinationOf destination, std::size_t count, Reduction reduction,
                             bool streaming) const {
    if (!ok_ || count == 0) return;
    const bool finish = reduction.last && args_.call.op == ReduceOp::avg;
    const Fold how{.type = args_.call.type,
                   .op = args_.call.op,
                   .divisor = finish ? view_.size : 1,
                   .streaming = streaming,
                   .own = reduction.own,
                   .scale = args_.scale};
    fold_elements(group_, how, sources, source, destinations, destination, count);
  }

  TREERING_DEVICE Chunk part(const Chunk* parts, int rank) const {
    if (parts != nullptr) return parts[rank];
    return {static_cast<std::size_t>(rank) * args_.call.count, args_.call.count};
  }

  TREERING_DEVICE std::size_t rounds_of(const Chunk* parts) const {
    if (parts == nullptr) return pieces_of(share(whole()), args_.call.chunk);
    std::size_t most = 0;
    for (int rank = 0; rank < size(); ++rank) {
      const std::size_t pieces = pieces_of(share(parts[rank]), args_.call.chunk);
      most = pieces > most ? pieces : most;
    }
    return most;
  }

  TREERING_DEVICE std::size_t edge_number(int peer) const {
    return static_cast<std::size_t>(group_.block()) * view_.size + peer;
  }

  /// Whether the peer called something else: now, or earlier, when neither had to wait for the other; then what it
  /// does not expect fills its slots, and nobody would ever free one.
  TREERING_DEVICE bool differs(const Board& board) const {
    for (std::uint64_t i = 0; i < board_entries; ++i) {
      const bool now = i == sequence_ % board_entries;
      const std::uint64_t ours = now ? word_ : load_relaxed(view_.board->entries[i].word);
      const std::uint64_t theirs = load_acquire(board.entries[i].word);
      if (ours != 0 && theirs != 0 && same_call(ours, theirs) && ours != theirs) return true;
    }
    return false;
  }

  /// A long wait looks around: at the abort word, and at the peer's board.
  template <class Condition>
  TREERING_DEVICE bool may_go_on(Condition done, int peer) {
    if (load_relaxed(view_.abort->value) != 0) return fail(Failure::aborted, view_.rank), false;
    const Board* board = view_.boards[peer];
    if (board == nullptr) return true;
    if (differs(*board)) return fail(Failure::mismatch, peer), false;
    const bool failed = load_acquire(board->failed.value) != 0;
    const bool closed = load_acquire(board->closed.value) != 0;
    if (!failed && !closed) return true;
    if (done()) return true;  // it served us before it left
    return fail(failed ? Failure::peer_failed : Failure::peer_closed, peer), false;
  }

  Group& group_;
  const RankView& view_;
  const CallArgs& args_;
  std::uint64_t sequence_;
  std::uint64_t word_;
  bool ok_ = true;
  bool direct_ = false;
  bool open_ = false;  ///< the same for all threads
};

}  // namespace treering
