#pragma once

// The fold for groups of many threads (`cuda`, `simt`). Thread t works on packs t, t + size, t +
// 2·size …
//
//     elements     | head | pack 0 | pack 1 | pack 2 | … | tail |
//     thread         0 1 2     0        1        2         0 1
//                         ▲ a multiple of 16 bytes
//
// Head and tail go element by element; so does everything if the addresses are not equally far from
// multiples of 16.
//
// First the threads write all addresses into shared memory. So a loop exists once per type and
// operator, for any number of addresses, not once for every place that folds; and no thread needs a
// stack for them.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/exec/group.hpp"
#include "kernels/exec/qualifiers.hpp"
#include "kernels/ops/elements.hpp"
#include "kernels/ops/fold.hpp"
#include "kernels/ops/operators.hpp"
#include "kernels/ops/pack.hpp"

namespace treering {

/// Most addresses, sources and destinations together, of one fold.
inline constexpr int device_max_fan = shared_bytes / sizeof(std::byte*);

/// A fold's addresses, sources first.
struct Fan {
  std::byte* address[device_max_fan];
};

/// What the loops are told.
struct DeviceFold {
  const Fan* fan;
  int sources, addresses;
  std::int32_t divisor, scaled;  ///< divisor_of(), scaled_source()
  std::uint64_t scale;
};

/// In place of an operator: the only source, bit for bit.
struct Copy {};

/// Under premul_sum: the packs of source number `s` become what it contributes.
template <class Element, class P, int batch>
TREERING_DEVICE void scale_own(const DeviceFold& fold, int s, P (&packs)[batch]) {
  if (s != fold.scaled) return;
  constexpr int lanes = sizeof(P) / sizeof(typename Element::Stored);
  TREERING_UNROLL
  for (int b = 0; b < batch; ++b) {
    TREERING_UNROLL
    for (int l = 0; l < lanes; ++l)
      packs[b].lane[l] = Element::narrow(scaled(Element::widen(packs[b].lane[l]), fold.scale));
  }
}

/// Adds the sources after the first to the packs that were loaded from that one.
template <class Element, class Op, class P, int batch, class Group>
TREERING_DEVICE void reduce_packs(Group& group, const DeviceFold& fold, P (&packs)[batch],
                                  std::size_t at, std::size_t stride) {
  constexpr int lanes = sizeof(P) / sizeof(typename Element::Stored);
  if constexpr (std::is_same_v<Op, PremulSum>) scale_own<Element>(fold, 0, packs);
  typename Element::Accumulator sums[batch][lanes];
  TREERING_UNROLL
  for (int b = 0; b < batch; ++b) {
    TREERING_UNROLL
    for (int l = 0; l < lanes; ++l) sums[b][l] = Element::widen(packs[b].lane[l]);
  }
  TREERING_ROLLED
  for (int s = 1; s < fold.sources; ++s) {
    const std::byte* source = fold.fan->address[s] + at;
    TREERING_UNROLL
    for (int b = 0; b < batch; ++b) packs[b] = load_pack<P>(group, source + b * stride);
    if constexpr (std::is_same_v<Op, PremulSum>) scale_own<Element>(fold, s, packs);
    TREERING_UNROLL
    for (int b = 0; b < batch; ++b) {
      TREERING_UNROLL
      for (int l = 0; l < lanes; ++l)
        sums[b][l] = Op::combine(sums[b][l], Element::widen(packs[b].lane[l]));
    }
  }
  TREERING_UNROLL
  for (int b = 0; b < batch; ++b) {
    TREERING_UNROLL
    for (int l = 0; l < lanes; ++l)
      packs[b].lane[l] = Element::narrow(finish<Op>(sums[b][l], fold.divisor));
  }
}

/// This thread's next `batch` packs: at byte `at`, and each `stride` bytes on. Their loads overlap.
template <class Element, class Op, int lanes, int batch, class Group>
TREERING_DEVICE void fold_packs(Group& group, const DeviceFold& fold, std::size_t at,
                                std::size_t stride) {
  using P = Pack<typename Element::Stored, lanes>;
  P packs[batch];
  const std::byte* source = fold.fan->address[0] + at;
  TREERING_UNROLL
  for (int b = 0; b < batch; ++b) packs[b] = load_pack<P>(group, source + b * stride);
  if constexpr (!std::is_same_v<Op, Copy>)
    reduce_packs<Element, Op>(group, fold, packs, at, stride);
  TREERING_ROLLED
  for (int d = fold.sources; d < fold.addresses; ++d) {
    std::byte* destination = fold.fan->address[d] + at;
    TREERING_UNROLL
    for (int b = 0; b < batch; ++b) store_pack(group, destination + b * stride, packs[b]);
  }
}

/// All threads' packs: the bytes [begin, end), from one multiple of 16 to another.
template <class Each, class Op, class Group>
TREERING_DEVICE void fold_body(Group& group, const DeviceFold& fold, std::size_t begin,
                               std::size_t end) {
  using Element = typename PackElement<Each, Op>::Type;
  using Stored = typename Element::Stored;
  // Few enough registers (about 50) to leave the callers theirs: no kernel may spill. What grows
  // fourfold and takes long to convert comes in packs of half the size.
  constexpr bool grows = sizeof(typename Element::Accumulator) == 4 * sizeof(Stored);
  constexpr int lanes = pack_bytes / sizeof(Stored) / (grows ? 2 : 1);
  constexpr int batch = std::is_same_v<Op, Copy> || lanes <= 4 ? 4 : grows ? 1 : 16 / lanes;
  constexpr std::size_t each = lanes * sizeof(Stored);
  const std::size_t stride = static_cast<std::size_t>(group.size()) * each;
  std::size_t at = begin + static_cast<std::size_t>(group.rank()) * each;
  TREERING_ROLLED
  for (; at + (batch - 1) * stride < end; at += batch * stride)
    fold_packs<Element, Op, lanes, batch>(group, fold, at, stride);
  if constexpr (batch > 1) {
    TREERING_ROLLED
    for (; at < end; at += stride) fold_packs<Element, Op, lanes, 1>(group, fold, at, stride);
  }
}

/// All threads' single elements: the bytes before `head` and those from `tail` on.
template <class Element, class Op, class Group>
TREERING_DEVICE void fold_ends(Group& group, const DeviceFold& fold, std::size_t head,
                               std::size_t tail, std::size_t bytes) {
  constexpr std::size_t each = sizeof(typename Element::Stored);
  const std::size_t stride = static_cast<std::size_t>(group.size()) * each;
  std::size_t at = static_cast<std::size_t>(group.rank()) * each;
  TREERING_ROLLED
  for (; at < head + (bytes - tail); at += stride)
    fold_packs<Element, Op, 1, 1>(group, fold, at < head ? at : at - head + tail, stride);
}

template <class Element, class Op, class Group>
TREERING_DEVICE void fold_all(Group& group, const DeviceFold& fold, std::size_t count) {
  const std::size_t bytes = count * sizeof(typename Element::Stored);
  const auto past_pack = [&](int i) {
    return reinterpret_cast<std::uintptr_t>(fold.fan->address[i]) % pack_bytes;
  };
  bool alike = true;
  for (int i = 1; i < fold.addresses; ++i) alike = alike && past_pack(i) == past_pack(0);
  const std::size_t to_pack = (pack_bytes - past_pack(0)) % pack_bytes;
  const std::size_t head = alike && to_pack < bytes ? to_pack : bytes;
  const std::size_t tail = bytes - (bytes - head) % pack_bytes;
  fold_ends<Element, Op>(group, fold, head, tail, bytes);
  fold_body<Element, Op>(group, fold, head, tail);
}

/// Finds the loop for a reduction.
template <class Group>
TREERING_DEVICE_CALL void run_reduction(Group group, DataType type, ReduceOp op, DeviceFold fold,
                                        std::size_t count) {
  with_reduction(type, op, [&]<class Element, class Op>(Element, Op) {
    fold_all<Element, Op>(group, fold, count);
  });
}

/// A copy looks at the size of elements only.
template <class Group>
TREERING_DEVICE_CALL void run_copy(Group group, DataType type, DeviceFold fold, std::size_t count) {
  switch (size_of(type)) {
    case 1:
      return fold_all<PlainElement<std::uint8_t>, Copy>(group, fold, count);
    case 2:
      return fold_all<PlainElement<std::uint16_t>, Copy>(group, fold, count);
    case 4:
      return fold_all<PlainElement<std::uint32_t>, Copy>(group, fold, count);
    default:
      return fold_all<PlainElement<std::uint64_t>, Copy>(group, fold, count);
  }
}

/// See fold.hpp. At most device_max_fan sources and destinations together.
template <class Group, class SourceOf, class DestinationOf>
TREERING_DEVICE void fold_elements(Group& group, const Fold& how, int sources, SourceOf source,
                                   int destinations, DestinationOf destination, std::size_t count) {
  Fan& fan = group.template shared<Fan>();
  const int addresses = sources + destinations;
  group.sync();  // nobody reads the addresses of the fold before any more
  for (int i = group.rank(); i < addresses; i += group.size())
    fan.address[i] = i < sources ? const_cast<std::byte*>(source(i)) : destination(i - sources);
  group.sync();
  const DeviceFold fold{&fan, sources, addresses, divisor_of(how), scaled_source(how), how.scale};
  if (is_copy(how, sources))
    run_copy(group, how.type, fold, count);
  else
    run_reduction(group, how.type, how.op, fold, count);
}

}  // namespace treering
