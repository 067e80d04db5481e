#include "tests/simt/scenario.hpp"

#include "kernels/catalog.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "tests/ranks/letters.hpp"

namespace treering::test {
namespace {

/// Messages of all kinds; more of them than a lane holds; buffers that are used again at once.
void run_messages(Team& team, std::uint64_t seed) {
  check(team, random_letters(team.size(), 40, 500, seed), seed);
  check(team, std::vector<Letter>(50, {.from = 0, .to = team.size() - 1, .tag = 1, .count = 50}),
        seed);
  if (team.size() == 1) return;
  // Rank 0 writes anew, by a message to itself, what rank 1 has just read by reference.
  constexpr std::size_t count = 300;
  std::vector<Buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.emplace_back(count * sizeof(std::int32_t));
  const auto send = [&](std::size_t from, int to) {
    return Transfer::send(buffers[from].data(), count, DataType::i32, to);
  };
  const auto receive = [&](std::size_t to) {
    return Transfer::receive(buffers[to].data(), count, DataType::i32, 0);
  };
  for (int turn = 0; turn < 8; ++turn)
    team.launch([&](Communicator& comm, const CallOptions& how) {
      if (comm.rank() == 0 && turn % 2 == 0) comm.exchange({send(0, 1)}, how);
      if (comm.rank() == 0 && turn % 2 == 1) comm.exchange({send(1, 0), receive(0)}, how);
      if (comm.rank() == 1 && turn % 2 == 0) comm.exchange({receive(2)}, how);
    });
  team.synchronize();
}

}  // namespace

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
  run_messages(team, seed);
  for (const Kernel& kernel : collective_kernels)
    for (const Collective collective : uneven_too(kernel.collective))
      for (const std::size_t count : {1, 37, 1201})
        for (const bool in_place : {false, true})
          for (const bool registered : {false, true}) {
            if (registered && kernel.wire == WireType::ll) continue;  // which is never direct
            check(team, {.pattern = {.collective = collective,
                                     .type = DataType::i32,
                                     .op = ReduceOp::sum,
                                     .ranks = size,
                                     .count = collective == Collective::barrier ? 0 : count,
                                     .seed = seed,
                                     .root = static_cast<int>(seed) % size,
                                     .symmetric = in_place},
                         .algorithm = kernel.algorithm,
                         .wire = kernel.wire,
                         .in_place = in_place,
                         .registered = registered});
          }
}

}  // namespace treering::test
