// Start, all-reduce, done: four processes of one machine add up their vectors.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <treering/treering.hpp>
#include <vector>

int work(const treering::UniqueId& id, int world_size, int rank) {
  auto comm = treering::Communicator::create(id, world_size, rank);

  std::vector<float> mine(1000, static_cast<float>(rank + 1)), sum(1000);
  comm.all_reduce(mine.data(), sum.data(), sum.size(), treering::DataType::f32,
                  treering::ReduceOp::sum);

  std::printf("rank %d of %d: sum = %g\n", comm.rank(), comm.size(), sum[0]);
  return sum[0] == 10 ? 0 : 1;
}

int main() {
  constexpr int world_size = 4;
  const auto id = treering::UniqueId::create();  // the same for all ranks
  for (int rank = 0; rank < world_size; ++rank) {
    if (fork() != 0) continue;
    try {
      return work(id, world_size, rank);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  }
  int failed = 0;
  for (int status = 0; wait(&status) > 0;) failed |= status;
  return failed != 0;
}
