#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <memory>
#include <thread>
#include <vector>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/host/group.hpp"
#include "kernels/ops/host/fold_host.hpp"
#include "kernels/wire/post.hpp"
#include "perf/bench/pin.hpp"
#include "perf/micro/benchmarks.hpp"

namespace treering::micro {
namespace {

constexpr std::uint64_t the_end = ~std::uint64_t{0};

/// A wire with one slot, and what its two ends do.
struct Wire {
  explicit Wire(std::size_t bytes) : slot(bytes), there(bytes), back(bytes) {}

  void copy(const std::vector<std::byte>& from, std::vector<std::byte>& to) {
    HostGroup group(0, 1, 0);
    fold_elements(
        group, {DataType::u8, ReduceOp::sum, 1, false}, 1, [&](int) { return from.data(); }, 1,
        [&](int) { return to.data(); }, from.size());
  }
  static void await(const std::uint64_t& flag, std::uint64_t value) {
    constexpr std::uint32_t spins = 20000;
    HostGroup group(0, 1, spins);
    for (std::uint32_t turn = 0; load_acquire(flag) < value; ++turn)
      group.pause(Site::post, 1, turn);
  }

  /// The other end: takes each message out of the slot and gives the credit for it.
  void serve() {
    for (std::uint64_t step = 1;; ++step) {
      await(post.step, step);
      if (load_relaxed(post.step) == the_end) return;
      copy(slot, back);
      store_release(credit.value, step);
    }
  }

  Post post{};
  Flag credit{};
  std::vector<std::byte> slot, there, back;
};

/// Sends a message of so many bytes and waits until the slot is free again.
void hand_over(benchmark::State& state) {
  const auto wire = std::make_unique<Wire>(static_cast<std::size_t>(state.range(0)));
  std::thread peer([&] {
    perf::pin_to_share(1, 2);
    wire->serve();
  });
  std::thread([&] {  // a thread of its own, so that this one keeps all its cores
    perf::pin_to_share(0, 2);
    std::uint64_t step = 0;
    for (auto _ : state) {
      wire->copy(wire->there, wire->slot);
      store_release(wire->post.step, ++step);
      Wire::await(wire->credit.value, step);
    }
  })
      .join();
  store_release(wire->post.step, the_end);
  peer.join();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

}  // namespace

/// Without bytes it is a flag that goes there and back.
void register_flags() {
  benchmark::RegisterBenchmark("flag_round_trip", hand_over)->Arg(0)->UseRealTime();
  benchmark::RegisterBenchmark("slot_hand_over", hand_over)
      ->ArgName("bytes")
      ->Arg(64)
      ->Arg(4 << 10)
      ->Arg(32 << 10)
      ->Arg(128 << 10)
      ->UseRealTime();
}

}  // namespace treering::micro
