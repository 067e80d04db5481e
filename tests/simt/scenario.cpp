#include "tests/simt/scenario.hpp"

#include "kernels/catalog.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"

namespace treering::test {

namespace {

/// A kernel's collective, and the one that uses it for uneven parts.
std::vector<Collective> uneven_too(Collective collective) {
  std::vector<Collective> both;
  for (int i = 0; i < collectives; ++i)
    if (even(static_cast<Collective>(i)) == collective) both.push_back(static_cast<Collective>(i));
  return both;
}

}  // namespace

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
    for (const Collective collective : uneven_too(kernel.collective))
      for (const std::size_t count : {1, 37, 1201})
        for (const bool in_place : {false, true})
          for (const bool registered : {false, true})
            check(team, {.pattern = {.collective = collective,
                                     .type = DataType::i32,
                                     .op = ReduceOp::sum,
                                     .ranks = size,
                                     .count = collective == Collective::barrier ? 0 : count,
                                     .seed = seed,
                                     .root = static_cast<int>(seed) % size,
                                     .symmetric = in_place},
                         .algorithm = kernel.algorithm,
                         .in_place = in_place,
                         .registered = registered});
}

}  // namespace treering::test
