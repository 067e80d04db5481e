#pragma once

// Every kernel there is. A kernel is known by what it does and how: a collective, an algorithm, and the type of
// the wires.

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "kernels/all_gather/direct.hpp"
#include "kernels/all_gather/ring.hpp"
#include "kernels/all_reduce/one_shot.hpp"
#include "kernels/all_reduce/ring.hpp"
#include "kernels/all_reduce/tree.hpp"
#include "kernels/all_reduce/two_shot.hpp"
#include "kernels/all_to_all/direct.hpp"
#include "kernels/barrier/dissemination.hpp"
#include "kernels/broadcast/direct.hpp"
#include "kernels/broadcast/ring.hpp"
#include "kernels/broadcast/tree.hpp"
#include "kernels/gather/direct.hpp"
#include "kernels/point_to_point/pairwise.hpp"
#include "kernels/reduce/direct.hpp"
#include "kernels/reduce/ring.hpp"
#include "kernels/reduce/tree.hpp"
#include "kernels/reduce_scatter/direct.hpp"
#include "kernels/reduce_scatter/ring.hpp"
#include "kernels/scatter/direct.hpp"

namespace treering {

struct Kernel {
  Collective collective;
  Algorithm algorithm;
  WireType wire = WireType::simple;
  friend constexpr bool operator==(const Kernel&, const Kernel&) = default;
};

inline constexpr Kernel simple_kernels[] = {
    {Collective::all_reduce, Algorithm::ring},
    {Collective::all_reduce, Algorithm::tree},
    {Collective::all_reduce, Algorithm::one_shot},
    {Collective::all_reduce, Algorithm::two_shot},
    {Collective::reduce_scatter, Algorithm::ring},
    {Collective::reduce_scatter, Algorithm::direct},
    {Collective::all_gather, Algorithm::ring},
    {Collective::all_gather, Algorithm::direct},
    {Collective::all_to_all, Algorithm::direct},
    {Collective::broadcast, Algorithm::ring},
    {Collective::broadcast, Algorithm::tree},
    {Collective::broadcast, Algorithm::direct},
    {Collective::reduce, Algorithm::ring},
    {Collective::reduce, Algorithm::tree},
    {Collective::reduce, Algorithm::direct},
    {Collective::gather, Algorithm::direct},
    {Collective::scatter, Algorithm::direct},
    {Collective::barrier, Algorithm::dissemination},
    {Collective::point_to_point, Algorithm::pairwise},
};
/// All of them, over every type of wire that they can use.
inline constexpr auto catalog = [] {
  constexpr auto count = [] {
    std::size_t kernels = 0;
    for (const Kernel& kernel : simple_kernels)
      kernels += has_wire(kernel.collective, WireType::ll) ? 2 : 1;
    return kernels;
  }();
  std::array<Kernel, count> all{};
  std::size_t next = 0;
  for (const Kernel& kernel : simple_kernels) {
    all[next++] = kernel;
    if (has_wire(kernel.collective, WireType::ll))
      all[next++] = {kernel.collective, kernel.algorithm, WireType::ll};
  }
  return all;
}();
/// All but the last, which is for messages.
inline constexpr std::span<const Kernel> collective_kernels{catalog.data(), catalog.size() - 1};
using CatalogNumbers = std::make_index_sequence<catalog.size()>;

/// The kernel of a call: uneven parts are no kernels of their own.
TREERING_PORTABLE constexpr Kernel kernel_of(const Descriptor& call) {
  return {even(call.collective), call.algorithm, call.wire};
}

/// Runs one block of one call of a kernel that is known when this is compiled.
template <Kernel kernel, class Group>
TREERING_DEVICE void run_kernel(Group& group, const RankView& view, const CallArgs& args) {
  // Messages have numbers and words of their own, and take no part in the order of calls.
  if constexpr (kernel.collective == Collective::point_to_point)
    return point_to_point_pairwise(group, view, args);
  Call<Group, kernel.wire> call(group, view, args);
  using enum Algorithm;
  if constexpr (kernel.collective == Collective::all_reduce) {
    if constexpr (kernel.algorithm == ring) all_reduce_ring(call);
    if constexpr (kernel.algorithm == tree) all_reduce_tree(call);
    if constexpr (kernel.algorithm == one_shot) all_reduce_one_shot(call);
    if constexpr (kernel.algorithm == two_shot) all_reduce_two_shot(call);
  } else if constexpr (kernel.collective == Collective::reduce_scatter) {
    if constexpr (kernel.algorithm == ring) reduce_scatter_ring(call);
    if constexpr (kernel.algorithm == direct) reduce_scatter_direct(call);
  } else if constexpr (kernel.collective == Collective::all_gather) {
    if constexpr (kernel.algorithm == ring) all_gather_ring(call);
    if constexpr (kernel.algorithm == direct) all_gather_direct(call);
  } else if constexpr (kernel.collective == Collective::all_to_all) {
    all_to_all_direct(call);
  } else if constexpr (kernel.collective == Collective::broadcast) {
    if constexpr (kernel.algorithm == ring) broadcast_ring(call);
    if constexpr (kernel.algorithm == tree) broadcast_tree(call);
    if constexpr (kernel.algorithm == direct) broadcast_direct(call);
  } else if constexpr (kernel.collective == Collective::reduce) {
    if constexpr (kernel.algorithm == ring) reduce_ring(call);
    if constexpr (kernel.algorithm == tree) reduce_tree(call);
    if constexpr (kernel.algorithm == direct) reduce_direct(call);
  } else if constexpr (kernel.collective == Collective::gather) {
    gather_direct(call);
  } else if constexpr (kernel.collective == Collective::scatter) {
    scatter_direct(call);
  } else {
    barrier_dissemination(call);
  }
  call.finish();
}

/// The same, for a kernel that the call names. The plan only ever asks for kernels that exist.
template <class Group>
inline void run_block(Group& group, const RankView& view, const CallArgs& args) {
  const Kernel wanted = kernel_of(args.call);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (void)((catalog[i] == wanted && (run_kernel<catalog[i]>(group, view, args), true)) || ...);
  }
  (CatalogNumbers{});
}

}  // namespace treering
