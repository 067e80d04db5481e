#include "tests/simt/scenario.hpp"

#include "kernels/catalog.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "tests/ranks/letters.hpp"

namespace treering::test {

void run_every_kernel(int size, int threads, std::uint64_t seed) {
  device();  // made with the settings' seed, so before ours
  simt::configure({.seed = seed, .threads = threads, .patience = std::chrono::milliseconds(200)});
  Team team(size);
  check(team, random_letters(size, 40, 500, seed), seed);
  for (const Kernel& kernel : catalog) {
    if (kernel.collective == Collective::point_to_point) continue;  // the letters above
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
}

}  // namespace treering::test
