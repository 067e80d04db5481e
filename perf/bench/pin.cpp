#include "perf/bench/pin.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <vector>

#include "plan/chunks.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> allowed;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) allowed.push_back(core);
  return allowed;
}

}  // namespace

int cores() { return static_cast<int>(allowed_cores().size()); }

void pin_to_share(int rank, int ranks) {
  const std::vector<int> all = allowed_cores();
  Chunk share{static_cast<std::size_t>(rank) % all.size(), 1};
  if (static_cast<std::size_t>(ranks) <= all.size())
    share = part_of({0, all.size()}, static_cast<std::size_t>(rank),
                    static_cast<std::size_t>(ranks), 1);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t i = 0; i < share.count; ++i) CPU_SET(all[share.begin + i], &set);
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof set, &set); error != 0)
    throw Error(ErrorCode::system,
                fmt::format("Rank {} cannot be pinned to its cores: {}. Try --pin 0.", rank,
                            std::strerror(error)));
}

}  // namespace treering::perf
