#include "perf/peers/machine.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/ops/host/machine.hpp"
#include "kernels/ops/host/stream.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void exchange(std::atomic<std::uint64_t>& mine, const std::atomic<std::uint64_t>& theirs) {
  constexpr int spins = 10'000;
  const std::uint64_t next = mine.load(std::memory_order_relaxed) + 1;
  mine.store(next, std::memory_order_release);
  for (int i = 0; theirs.load(std::memory_order_acquire) < next; ++i)
    if (i > spins) sched_yield();
}

/// The best of some batches: the others were interrupted.
double time_exchange(std::atomic<std::uint64_t>& mine, const std::atomic<std::uint64_t>& theirs) {
  constexpr int batches = 8, exchanges = 200;
  double best = std::numeric_limits<double>::max();
  for (int batch = 0; batch < batches; ++batch) {
    exchange(mine, theirs);
    const auto begin = Clock::now();
    for (int i = 0; i < exchanges; ++i) exchange(mine, theirs);
    best = std::min(best, seconds_since(begin) / exchanges);
  }
  return best;
}

/// Bytes that one rank copies at once: together 256 MiB where ranks are few.
std::size_t bytes_to_copy(int ranks) {
  return std::max(std::size_t{16} << 20,
                  (std::size_t{256} << 20) / static_cast<std::size_t>(ranks));
}

template <class Copy>
double best_time(const Seat& seat, Copy copy) {
  constexpr int times = 3;
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) {
    seat.control.barrier();
    const auto begin = Clock::now();
    copy();
    best =
        std::min(best, seat.control.combine(seat.rank, {.seconds = seconds_since(begin)}).seconds);
  }
  return best;
}

}  // namespace

double probe_distance(const Seat& seat) {
  double mine = 0;
  for (int other = 1; other < std::min(seat.ranks, std::max(seat.cores, 2)); ++other) {
    seat.control.barrier();
    auto& first = seat.control.flag(other, false);
    auto& second = seat.control.flag(other, true);
    if (seat.rank == 0) mine = std::max(mine, time_exchange(first, second));
    if (seat.rank == other) mine = time_exchange(second, first);
  }
  return seat.control.combine(seat.rank, {.seconds = mine}).seconds;
}

double copy_rate(const Seat& seat) {
  const std::size_t bytes = bytes_to_copy(seat.ranks);
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  const double plain = best_time(seat, [&] { std::memcpy(to.data(), from.data(), bytes); });
  const double streamed = best_time(seat, [&] {
    stream_copy(to.data(), from.data(), bytes);
    finish_streaming();
  });
  return static_cast<double>(bytes) * seat.ranks / std::min(plain, streamed);
}

}  // namespace treering::perf
