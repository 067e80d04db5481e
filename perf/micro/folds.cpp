#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/exec/host/group.hpp"
#include "kernels/ops/host/fold_host.hpp"
#include "perf/micro/benchmarks.hpp"
#include "treering/types.hpp"

namespace treering::micro {
namespace {

/// Of `bytes` each, all alike: what counts is not what is in them.
class Arrays {
 public:
  Arrays(std::size_t number, std::size_t bytes) : arrays_(number) {
    for (auto& array : arrays_) array.resize(bytes / sizeof(Line));
  }
  std::byte* operator[](std::size_t i) { return arrays_[i].front().bytes; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<std::vector<Line>> arrays_;
};

/// Folds `sources` arrays of so many bytes into one.
void fold(benchmark::State& state, const Fold& how, int sources, std::size_t bytes) {
  const auto arrays = static_cast<std::size_t>(sources) + 1;
  Arrays array(arrays, bytes);
  HostGroup group(0, 1, 0);
  for (auto _ : state) {
    fold_elements(
        group, how, sources, [&](int i) { return array[static_cast<std::size_t>(i) + 1]; }, 1,
        [&](int) { return array[0]; }, bytes / size_of(how.type));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * arrays * bytes));
}

void register_fold(const std::string& name, const Fold& how, int sources, std::size_t bytes) {
  benchmark::RegisterBenchmark(name.c_str(), fold, how, sources, bytes);
}

}  // namespace

void register_folds() {
  constexpr std::size_t chunk = 32 << 10, huge = 64 << 20;
  for (int t = 0; t < data_types; ++t)
    for (int o = 0; o < reduce_ops; ++o) {
      const Fold how{static_cast<DataType>(t), static_cast<ReduceOp>(o), 2, false};
      if (!applies(how.op, how.type)) continue;
      register_fold(fmt::format("fold/{}/{}/32K", name(how.type), name(how.op)), how, 2, chunk);
    }
  for (const bool streaming : {false, true})
    for (const int sources : {1, 2, 4}) {
      const Fold how{DataType::f32, ReduceOp::sum, 1, streaming};
      const char* const stores = streaming ? "streaming" : "cached";
      register_fold(fmt::format("{}_to_1/f32/64M/{}", sources, stores), how, sources, huge);
    }
}

}  // namespace treering::micro
