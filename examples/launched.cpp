// For every launcher (docs/starting.md): each rank learns its place from the environment.
//
//     torchrun --standalone --nproc-per-node 4 --no-python build/bin/example_launched
//     mpirun -n 4 build/bin/example_launched
//     srun -n 4 build/bin/example_launched

#include <cstdio>
#include <exception>
#include <string>
#include <treering/treering.hpp>
#include <vector>

int main() try {
  auto comm = treering::Communicator::create_from_environment();

  std::vector<float> mine(1000, static_cast<float>(comm.rank() + 1)), sum(1000);
  comm.all_reduce(mine.data(), sum.data(), sum.size(), treering::DataType::f32,
                  treering::ReduceOp::sum);

  const std::string line = "rank " + std::to_string(comm.rank()) + " of " +
                           std::to_string(comm.size()) +
                           ": sum = " + std::to_string(static_cast<int>(sum[999])) + "\n";
  std::fputs(line.c_str(), stdout);
  const int expected = comm.size() * (comm.size() + 1) / 2;
  return sum == std::vector(1000, static_cast<float>(expected)) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
