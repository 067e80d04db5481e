#include "kernels/exec/simt/grid.hpp"

#include <cstring>
#include <memory>

namespace treering::simt {

void furnish(Grid& grid, Kernel kernel) {
  const int warps = (grid.threads + warp_size - 1) / warp_size;
  auto body = std::make_unique<const Kernel>(std::move(kernel));
  auto blocks = std::make_unique<Block[]>(grid.blocks);
  auto threads = std::make_unique<Thread*[]>(grid.blocks * grid.threads);
  auto all_warps = std::make_unique<Warp[]>(grid.blocks * warps);
  for (int b = 0; b < grid.blocks; ++b) {
    blocks[b].grid = &grid;
    blocks[b].index = b;
    blocks[b].threads = threads.get() + b * grid.threads;
    blocks[b].warps = all_warps.get() + b * warps;
    std::memset(blocks[b].shared, 0xa5, shared_bytes);  // as good as uninitialised, but replays
  }
  threads.release();
  all_warps.release();
  grid.kernel = body.release();
  grid.block = blocks.release();
  grid.begin.release();
}

void clear(const Kernel* kernel, Block* blocks) {
  delete kernel;
  delete[] blocks[0].threads;
  delete[] blocks[0].warps;
  delete[] blocks;
}

}  // namespace treering::simt
