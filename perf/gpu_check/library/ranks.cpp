// Ranks as processes: two on one GPU, by CUDA IPC; one on each GPU.
//
//     probe: rank 0 ──┬─ id ──► second process: rank 1
//                     └─ id ──► …

#include <fmt/format.h>

#include <deque>

#include "perf/gpu_check/library.hpp"
#include "perf/gpu_check/library/team.hpp"
#include "perf/gpu_check/second.hpp"

namespace treering::gpu_check {
namespace {

constexpr std::size_t counts[] = {1, 1000, 40'007};

struct Seat {
  std::array<std::byte, UniqueId::size> id;
  int size, rank, gpu;
};

/// Every kernel, once in each size. What is wrong; empty if nothing is.
std::string check_rank(const Seat& seat) {
  if (usable_gpus() > 0) use_gpu(seat.gpu);
  Communicator comm =
      Communicator::create(UniqueId::from_bytes(seat.id.data()), seat.size, seat.rank);
  RankMemory memory(counts[std::size(counts) - 1] * sizeof(float) *
                    static_cast<std::size_t>(seat.size));
  std::string text;
  std::uint64_t seed = 0;
  for (const Kernel& kernel : collective_kernels)
    for (const std::size_t count : counts) {
      ++seed;
      const Pattern pattern{kernel.collective, DataType::f32, ReduceOp::sum,
                            seat.size,         count,         seed};
      memory.prepare({.kernel = kernel, .pattern = pattern, .in_place = seed % 2 == 0}, seat.rank);
      memory.call(comm, {});
      if (text.empty()) text = memory.faults(seat.rank);
    }
  return text;
}

void be_rank(int socket) {
  Seat seat{};
  receive(socket, &seat, sizeof seat);
  std::array<char, 512> text{};
  check_rank(seat).copy(text.data(), text.size() - 1);
  send(socket, text.data(), text.size());
}

void check_ranks(Findings& findings, int size, bool own_gpus) {
  Seat seat{UniqueId::create().bytes(), size, 0, 0};
  std::deque<Second> others;
  for (int rank = 1; rank < size; ++rank) {
    seat.rank = rank;
    seat.gpu = own_gpus ? rank : 0;
    send(others.emplace_back("rank").socket(), &seat, sizeof seat);
  }
  seat.rank = seat.gpu = 0;
  if (const std::string text = check_rank(seat); !text.empty()) findings.fail(text);
  for (Second& other : others) {
    std::array<char, 512> text{};
    receive(other.socket(), text.data(), text.size());
    if (text[0] != 0) findings.fail(text.data());
  }
  findings.number("calls", static_cast<double>(collective_kernels.size() * std::size(counts)));
}

}  // namespace

Probes rank_process_probes() {
  return {{.name = "ranks.two_processes",
           .question = "are all kernels exact among two processes on one GPU",
           .seconds = 40,
           .run = [](Findings& findings) { check_ranks(findings, 2, false); }},
          {.name = "ranks.process_per_gpu",
           .question = "are all kernels exact among processes on all GPUs",
           .seconds = 60,
           .run = [](Findings& findings) {
             const int gpus = usable_gpus() > 0 ? usable_gpus() : machines(OnHost{});
             if (gpus < 2) return findings.skip("there is one GPU");
             check_ranks(findings, gpus, true);
           }}};
}

std::vector<Helper> rank_helpers() { return {{"rank", be_rank}}; }

}  // namespace treering::gpu_check
