// The `__global__` entries: one for each kernel of the catalog, so that each has its own register
// count. Everything is compiled here, as one module.

#include "kernels/catalog.hpp"
#include "kernels/exec/cuda/group.hpp"
#include "kernels/exec/cuda/kernels.hpp"
#include "kernels/exec/cuda/launch.hpp"
#include "kernels/ops/device_fold.hpp"

namespace treering {
namespace {

template <Collective collective, Algorithm algorithm, WireType wire>
__global__ void __launch_bounds__(block_threads, 1) entry(const __grid_constant__ Team team) {
  __shared__ alignas(shared_alignment) std::byte shared[shared_bytes];
  const int block = static_cast<int>(blockIdx.x);
  const TeamMember& member = team.members[block / team.blocks];
  CudaGroup group(block % team.blocks, team.blocks, shared);

  // Every acquire empties the L1 cache, but not shared memory.
  __shared__ RankView view;
  if (group.is_leader()) view = *member.view;
  group.sync();
  run_kernel<Kernel{collective, algorithm, wire}>(group, view, member.args);
}

template <std::size_t... i>
std::span<const KernelEntry> list(std::index_sequence<i...>) {
  static const KernelEntry entries[] = {
      {catalog[i].collective, catalog[i].algorithm, catalog[i].wire,
       reinterpret_cast<const void*>(
           &entry<catalog[i].collective, catalog[i].algorithm, catalog[i].wire>)}...};
  return entries;
}

}  // namespace

std::span<const KernelEntry> kernel_entries() noexcept { return list(CatalogNumbers{}); }

}  // namespace treering
