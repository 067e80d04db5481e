#pragma once

// Every kernel there is. A kernel is known by what it does and how: a collective and an algorithm.

#include <cstddef>
#include <utility>

#include "kernels/all_gather/direct.hpp"
#include "kernels/all_gather/ring.hpp"
#include "kernels/all_reduce/one_shot.hpp"
#include "kernels/all_reduce/ring.hpp"
#include "kernels/all_reduce/two_shot.hpp"
#include "kernels/all_to_all/direct.hpp"
#include "kernels/barrier/dissemination.hpp"
#include "kernels/point_to_point/pairwise.hpp"
#include "kernels/reduce_scatter/direct.hpp"
#include "kernels/reduce_scatter/ring.hpp"

namespace treering {

struct Kernel {
  Collective collective;
  Algorithm algorithm;
  friend constexpr bool operator==(const Kernel&, const Kernel&) = default;
};

inline constexpr Kernel catalog[] = {
    {Collective::all_reduce, Algorithm::ring},
    {Collective::all_reduce, Algorithm::one_shot},
    {Collective::all_reduce, Algorithm::two_shot},
    {Collective::reduce_scatter, Algorithm::ring},
    {Collective::reduce_scatter, Algorithm::direct},
    {Collective::all_gather, Algorithm::ring},
    {Collective::all_gather, Algorithm::direct},
    {Collective::all_to_all, Algorithm::direct},
    {Collective::barrier, Algorithm::dissemination},
    {Collective::point_to_point, Algorithm::pairwise},
};
using CatalogNumbers = std::make_index_sequence<std::size(catalog)>;

/// Runs one block of one call of a kernel that is known when this is compiled.
template <Kernel kernel, class Group>
TREERING_DEVICE void run_kernel(Group& group, const RankView& view, const CallArgs& args) {
  // Messages have numbers and words of their own, and take no part in the order of calls.
  if constexpr (kernel.collective == Collective::point_to_point)
    return point_to_point_pairwise(group, view, args);
  Call<Group> call(group, view, args);
  if constexpr (kernel.collective == Collective::all_reduce) {
    if constexpr (kernel.algorithm == Algorithm::ring) all_reduce_ring(call);
    if constexpr (kernel.algorithm == Algorithm::one_shot) all_reduce_one_shot(call);
    if constexpr (kernel.algorithm == Algorithm::two_shot) all_reduce_two_shot(call);
  } else if constexpr (kernel.collective == Collective::reduce_scatter) {
    if constexpr (kernel.algorithm == Algorithm::ring) reduce_scatter_ring(call);
    if constexpr (kernel.algorithm == Algorithm::direct) reduce_scatter_direct(call);
  } else if constexpr (kernel.collective == Collective::all_gather) {
    if constexpr (kernel.algorithm == Algorithm::ring) all_gather_ring(call);
    if constexpr (kernel.algorithm == Algorithm::direct) all_gather_direct(call);
  } else if constexpr (kernel.collective == Collective::all_to_all) {
    all_to_all_direct(call);
  } else {
    barrier_dissemination(call);
  }
  call.finish();
}

/// The same, for a kernel that the call names. The plan only ever asks for kernels that exist.
template <class Group>
inline void run_block(Group& group, const RankView& view, const CallArgs& args) {
  const Kernel wanted{args.call.collective, args.call.algorithm};
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (void)((catalog[i] == wanted && (run_kernel<catalog[i]>(group, view, args), true)) || ...);
  }
  (CatalogNumbers{});
}

}  // namespace treering
