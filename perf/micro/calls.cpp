#include <benchmark/benchmark.h>

#include <vector>

#include "perf/micro/benchmarks.hpp"
#include "plan/choice.hpp"
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

/// The choice of algorithm, wire and sizes alone.
void choice(benchmark::State& state) {
  const Costs costs = default_costs(Machine::cpu, 2, 2);
  const Situation situation{.collective = Collective::all_reduce,
                            .bytes = static_cast<std::size_t>(state.range(0)),
                            .element_bytes = 4,
                            .size = 2,
                            .channels = 1,
                            .all_channels = false,
                            .shape = {.slots = 8, .slot_bytes = 128 << 10}};
  for (auto _ : state) benchmark::DoNotOptimize(choose(situation, costs));
}

/// What CallOptions::choice costs at each call.
void choice_rules(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(ChoiceRules::parse("all_reduce:0-64K=one_shot,64K-=two_shot"));
}

}  // namespace

void register_calls() {
  benchmark::RegisterBenchmark("choice", choice)->Arg(8)->Arg(1 << 20);
  benchmark::RegisterBenchmark("choice_rules", choice_rules);
  benchmark::RegisterBenchmark("blocking_call", blocking_call);
  benchmark::RegisterBenchmark("call_on_a_stream", call_on_a_stream)->UseRealTime();
}

}  // namespace treering::micro
