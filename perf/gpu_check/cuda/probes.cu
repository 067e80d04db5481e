// The probes again, for the GPU: one module, since each file costs nvcc many seconds. Their names
// must therefore differ.

#include "perf/gpu_check/probes/copies.cpp"
#include "perf/gpu_check/probes/facts.cpp"
#include "perf/gpu_check/probes/hops.cpp"
#include "perf/gpu_check/probes/litmus.cpp"
#include "perf/gpu_check/probes/processes.cpp"
#include "perf/gpu_check/probes/queues.cpp"
#include "perf/gpu_check/probes/residency.cpp"
#include "perf/gpu_check/probes/spinning.cpp"
#include "perf/gpu_check/probes/stuck.cpp"
