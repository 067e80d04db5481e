#include <benchmark/benchmark.h>

#include <vector>

#include "perf/micro/benchmarks.hpp"
#include "treering/treering.hpp"

namespace treering::micro {
namespace {

constexpr std::size_t count = 2;  // elements: the call, not the data, is what is timed

/// A blocking call of a rank alone: arguments, choice, kernel, but no waiting for others.
void blocking_call(benchmark::State& state) {
  std::vector<Communicator> alone = Communicator::create_local(1);
  const std::vector<float> in(count);
  std::vector<float> out(count);
  for (auto _ : state)
    alone[0].all_reduce(in.data(), out.data(), count, DataType::f32, ReduceOp::sum);
}

/// The same by way of a stream, whose thread runs the kernel.
void call_on_a_stream(benchmark::State& state) {
  std::vector<Communicator> alone = Communicator::create_local(1);
  Stream stream;
  const std::vector<float> in(count);
  std::vector<float> out(count);
  for (auto _ : state) {
    alone[0].all_reduce(in.data(), out.data(), count, DataType::f32, ReduceOp::sum,
                        {.stream = &stream});
    stream.synchronize();
  }
}

}  // namespace

void register_calls() {
  benchmark::RegisterBenchmark("blocking_call", blocking_call);
  benchmark::RegisterBenchmark("call_on_a_stream", call_on_a_stream)->UseRealTime();
}

}  // namespace treering::micro
