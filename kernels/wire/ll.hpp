#pragma once

// The LL wire ("low latency"): messages without posts. Every four bytes of data share an *element* of
// eight with a flag of their own. Elements are stored and loaded at once, so whoever sees the flag has
// the data:
//
//     sender                                               receiver
//     ┌──────────┐        ┌────────┬─────────┬──────┬──────┐        ┌──────────┐
//     │ outgoing │ ─────► │ word ⚑ │ bytes ⚑ │ data⚑│ data⚑│ ─────► │ incoming │
//     └──────────┘ encode └────────┴─────────┴──────┴──────┘ decode └──────────┘
//                      a slot of the receiver's inbox (header: two elements each)
//
// All threads encode and decode, each its own elements. A message takes one trip, and neither a release
// nor an acquire, but twice its bytes and two more copies: for short messages. Buffers are never accessed
// directly. Credits are as those of simple wires; all else is the LL wire's own, counters too.
//
// The flag is the message's number, its lower 32 bits. An element that shorter messages have left alone
// for 2³² numbers would be taken for new; so now and then a message stores all of its slot
// (plan/ll_slots.hpp). The header's call word is compared, by all, before the data is waited for.

#include <type_traits>

#include "kernels/ops/pack.hpp"
#include "kernels/wire/call.hpp"
#include "plan/ll_slots.hpp"

namespace treering {

/// What the elements of a message have in common.
TREERING_PORTABLE constexpr std::uint64_t ll_element(std::uint64_t step, std::uint32_t data) {
  return step << 32 | data;
}
TREERING_PORTABLE constexpr bool is_of_step(std::uint64_t element, std::uint64_t step) {
  return element >> 32 == (step & 0xffff'ffff);
}

/// Marks a header's `bytes` if they are not those of the message, which then holds a number.
inline constexpr std::uint64_t ll_offer = std::uint64_t{1} << 63;

/// The length of a message's data.
TREERING_PORTABLE constexpr std::size_t ll_data_bytes_of(std::uint64_t header_bytes) {
  return (header_bytes & ll_offer) != 0 ? sizeof(std::uint64_t) : header_bytes;
}

/// Elements that a thread loads or stores in one go.
inline constexpr int ll_batch = 4;

using LlPack = Pack<std::uint32_t, 1>;

/// How a group is given to functions that are called: by value, since a thread of a GPU has no memory of its
/// own; but the host's holds the block's shared memory.
template <class Group>
using GroupArgument = std::conditional_t<(sizeof(Group) < shared_bytes), Group, Group&>;

TREERING_DEVICE std::uint64_t* ll_slot(const RankView& view, std::uint64_t* slots,
                                       std::uint64_t step) {
  const std::size_t stride = ll_slot_bytes(view.shape) / ll_element_bytes;
  return slots + (step & (view.shape.slots - 1)) * stride;
}

/// Stores message `edge.sent`, which holds the data of edge.to.outgoing, or the number `offered`: all threads
/// of the group.
template <class Group>
TREERING_DEVICE_CALL void ll_encode(GroupArgument<Group> group, const RankView& view,
                                    const LlEdge& edge, std::uint64_t word, std::uint64_t bytes,
                                    std::uint64_t offered) {
  const std::uint64_t step = edge.sent;
  std::uint64_t* slot = ll_slot(view, edge.to.slots, step);
  const std::size_t end =
      ll_header_elements + ll_stored_elements(view.shape, step, ll_data_bytes_of(bytes));
  const std::size_t stride = group.size();
  const auto data_of = [&](std::size_t i) {
    const bool numbers =
        i < ll_header_elements || ((bytes & ll_offer) != 0 && i < ll_header_elements + 2);
    if (numbers)
      return static_cast<std::uint32_t>((i < 2 ? word : i < 4 ? bytes : offered) >> (i % 2 * 32));
    const std::byte* from = edge.to.outgoing + (i - ll_header_elements) * ll_data_bytes;
    return load_pack<LlPack>(group, from).lane[0];
  };
  TREERING_ROLLED
  for (std::size_t first = group.rank(); first < end; first += ll_batch * stride) {
    std::uint32_t batch[ll_batch] = {};
    TREERING_UNROLL
    for (int b = 0; b < ll_batch; ++b)
      if (first + b * stride < end) batch[b] = data_of(first + b * stride);
    TREERING_UNROLL
    for (int b = 0; b < ll_batch; ++b)
      if (first + b * stride < end) group.put(slot[first + b * stride], ll_element(step, batch[b]));
  }
}

/// Polls elements `first`, `first + stride` … below `end` until all of them belong to message `step`.
/// False if this thread gave up, since the leader did or the call was aborted.
template <class Group>
TREERING_DEVICE bool ll_poll(Group& group, const RankView& view, int peer,
                             const std::uint64_t* slot, std::size_t first, std::size_t stride,
                             std::size_t end, std::uint64_t step,
                             std::uint64_t (&batch)[ll_batch]) {
  for (std::uint32_t turn = 0;; ++turn) {
    bool all = true;
    TREERING_UNROLL
    for (int b = 0; b < ll_batch; ++b) {
      const std::size_t i = first + b * stride;
      batch[b] = i < end ? load_relaxed(slot[i]) : ll_element(step, 0);
    }
    TREERING_UNROLL
    for (int b = 0; b < ll_batch; ++b) all = all && is_of_step(batch[b], step);
    if (all) return true;
    if (group.pause(Site::element, peer, turn) &&
        (load_relaxed(view.abort->value) != 0 ||
         load_relaxed(view.verdicts[group.block()].failure) != 0))
      return false;
  }
}

/// Waits for message `edge.received + 1` and decodes it: all threads of the group, each its elements.
/// False if this thread gave up. Data of another call is left where it is.
template <class Group>
TREERING_DEVICE_CALL bool ll_decode(GroupArgument<Group> group, const RankView& view,
                                    const LlEdge& edge, int peer, std::uint64_t word) {
  const std::uint64_t step = edge.received + 1;
  const std::uint64_t* slot = ll_slot(view, edge.from.slots, step);
  std::uint64_t batch[ll_batch];
  if (!ll_poll(group, view, peer, slot, 0, 1, ll_header_elements, step, batch)) return false;
  const auto joined = [](std::uint64_t low, std::uint64_t high) {
    return (low & 0xffff'ffff) | high << 32;
  };
  const LlHeader header{joined(batch[0], batch[1]), joined(batch[2], batch[3])};
  if (group.is_leader()) *edge.from.header = header;
  if (header.word != word) return true;

  const std::size_t capacity = ll_capacity(view.shape), length = ll_data_bytes_of(header.bytes);
  const std::size_t bytes = length < capacity ? length : capacity;
  const std::size_t end = (bytes + ll_data_bytes - 1) / ll_data_bytes, stride = group.size();
  slot += ll_header_elements;
  TREERING_ROLLED
  for (std::size_t first = group.rank(); first < end; first += ll_batch * stride) {
    if (!ll_poll(group, view, peer, slot, first, stride, end, step, batch)) return false;
    TREERING_UNROLL
    for (int b = 0; b < ll_batch; ++b)
      if (const std::size_t i = first + b * stride; i < end)
        store_pack(group, edge.from.incoming + i * ll_data_bytes,
                   LlPack{static_cast<std::uint32_t>(batch[b])});
  }
  return true;
}

/// See wire.hpp.
template <class Call>
class LlWire {
 public:
  static constexpr bool direct = false;

  TREERING_DEVICE LlWire(Call& call, int peer)
      : call_(call), edge_(call.ll_edge(peer)), peer_(peer) {}

  TREERING_DEVICE int peer() const { return peer_; }

  /// From here on `sent` is the number of the message that is being made.
  TREERING_DEVICE void await_credit() {
    call_.close_flags();
    if (!call_.group().is_leader()) return;
    const std::uint64_t slots = call_.view().shape.slots, next = ++edge_.sent;
    if (next > slots) call_.poll(Site::credit, peer_, edge_.to.credit->value, next - slots);
  }

  /// The leader waits for the message's first element and looks around meanwhile; then all decode. Threads
  /// may come to different ends: agree() joins them.
  TREERING_DEVICE void await_post() {
    call_.close_flags();
    const bool leader = call_.group().is_leader();
    if (leader) {
      const std::uint64_t step = edge_.received + 1;
      const std::uint64_t& first = *ll_slot(call_.view(), edge_.from.slots, step);
      call_.poll(Site::element, peer_, [&] { return is_of_step(load_relaxed(first), step); });
    }
    if (!call_.ok()) return;
    if (!ll_decode<typename Call::Threads>(call_.group(), call_.view(), edge_, peer_, call_.word()))
      call_.give_up();
    else if (leader && edge_.from.header->word != call_.word())
      call_.fail(Failure::mismatch, peer_);
  }

  TREERING_DEVICE void require_fit(std::uint64_t sent, std::uint64_t expected) {
    if (!call_.group().is_leader() || !call_.ok()) return;
    std::uint64_t they_expect;
    memcpy(&they_expect, edge_.from.incoming, sizeof they_expect);
    call_.require_fit(peer_, sent, they_expect, edge_.from.header->bytes & ~ll_offer, expected);
  }

  TREERING_DEVICE void await_released() {
    if (!call_.group().is_leader()) return;
    call_.poll(Site::credit, peer_, edge_.to.credit->value, edge_.sent);
  }

  TREERING_DEVICE std::byte* outgoing(std::size_t /*bytes*/) const { return edge_.to.outgoing; }
  TREERING_DEVICE const std::byte* incoming(std::size_t /*bytes*/) const {
    return edge_.from.incoming;
  }

  TREERING_DEVICE void post(std::size_t bytes, Reference = 0, Reference = 0) { send(bytes, 0); }
  TREERING_DEVICE void offer(std::uint64_t sent, std::uint64_t expected, Reference, Reference) {
    send(sent | ll_offer, expected);
  }
  TREERING_DEVICE std::byte* offered_input() const { return nullptr; }
  TREERING_DEVICE std::byte* offered_output() const { return nullptr; }

  TREERING_DEVICE void release() {
    if (!call_.ok()) return;
    call_.open_flags();
    if (call_.group().is_leader())
      call_.group().raise(Site::credit, edge_.from.credit->value, ++edge_.received);
  }

 private:
  TREERING_DEVICE void send(std::uint64_t bytes, std::uint64_t offered) {
    if (!call_.ok()) return;
    call_.open_flags();
    ll_encode<typename Call::Threads>(call_.group(), call_.view(), edge_, call_.word(), bytes,
                                      offered);
  }

  Call& call_;
  LlEdge& edge_;
  int peer_;
};

}  // namespace treering
