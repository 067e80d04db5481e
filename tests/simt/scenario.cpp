#include "tests/simt/scenario.hpp"

#include "kernels/catalog.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"

namespace treering::test {

simt::Malice all_malice(int size) {
  constexpr int blocks = 2, hardware_queues = 2;  // blocks of a rank: see main.cpp
  return simt::Malice::all(size * blocks, hardware_queues);
}

void run_every_kernel(int size, int threads, std::uint64_t seed, const simt::Malice& malice) {
  device();  // made with the settings' seed, so before ours
  simt::configure({.seed = seed,
                   .threads = threads,
                   .patience = std::chrono::milliseconds(200),
                   .malice = malice});
  Team team(size);
  for (const Kernel& kernel : catalog)
    for (const std::size_t count : {1, 37, 1201})
      for (const bool in_place : {false, true})
        for (const bool registered : {false, true}) {
          const bool barrier = kernel.collective == Collective::barrier;
          check(team, {.pattern = {kernel.collective, DataType::i32, ReduceOp::sum, size,
                                   barrier ? 0 : count, seed},
                       .algorithm = kernel.algorithm,
                       .in_place = in_place,
                       .registered = registered});
        }
}

}  // namespace treering::test
