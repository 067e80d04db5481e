// Question 1: what is this machine? Versions, attributes, peers.

#include "perf/gpu_check/rig.hpp"

namespace treering::gpu_check {

Probes facts_probes(Place) {
  return {{.name = "facts.device",
           .question = "versions, and what the device says that it can do",
           .seconds = 20,
           .run = [](Findings& findings) { Rig().describe(findings); },
           .each_gpu = true}};
}

}  // namespace treering::gpu_check
