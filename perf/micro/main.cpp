// `treering-micro`: see --help for Google Benchmark's options; --benchmark_filter=REGEX picks some.

#include <benchmark/benchmark.h>

#include "kernels/ops/host/fold_host.hpp"
#include "perf/micro/benchmarks.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("folds", treering::fold_instruction_set());
  treering::micro::register_folds();
  treering::micro::register_flags();
  treering::micro::register_calls();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
