#include "kernels/exec/cuda/queue.hpp"

#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "kernels/exec/cuda/check.hpp"
#include "kernels/exec/cuda/kernels.hpp"
#include "kernels/exec/cuda/launch.hpp"

namespace treering {
namespace {

using Clock = std::chrono::steady_clock;

/// Spins, then naps, until done() or `deadline`. Returns done().
template <class Done>
bool poll_until(Done done, Clock::time_point deadline = Clock::time_point::max()) {
  constexpr int spins = 1000;
  constexpr std::chrono::microseconds nap(50);
  for (int turn = 0; !done(); ++turn) {
    if (Clock::now() > deadline) return false;
    if (turn > spins) std::this_thread::sleep_for(nap);
  }
  return true;
}

bool is_done(cudaError_t result, const char* call) {
  if (result == cudaErrorNotReady) return false;
  check(result, call);
  return true;
}

/// Events that Treering waits for outside of a graph as well must be recorded, and waited for, by nodes of
/// the graph: otherwise they would stand for a place in the capture, and be no good anywhere else.
bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status == cudaStreamCaptureStatusActive;
}

bool same_grid(const Launch& a, const Launch& b) {
  return a.blocks == b.blocks && a.args.call.collective == b.args.call.collective &&
         a.args.call.algorithm == b.args.call.algorithm && a.args.call.wire == b.args.call.wire;
}

}  // namespace

CudaEvent::CudaEvent(int device) : device_(device) {
  const OnDevice here(device_);
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::done() {
  const OnDevice here(device_);
  return is_done(cudaEventQuery(event_), "cudaEventQuery");
}

void CudaEvent::synchronize() {
  poll_until([this] { return done(); });
}

LanePool::LanePool(int device, int lanes) : device_(device) {
  for (int i = 0; i < lanes; ++i) idle_.push_back(make());
}

LanePool::~LanePool() {
  for (const Lane& lane : idle_) {
    cudaStreamDestroy(lane.stream);
    cudaEventDestroy(lane.joint);
  }
}

Lane LanePool::make() const {
  const OnDevice here(device_);
  Lane lane{};
  check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking),
        "cudaStreamCreateWithFlags");
  check(cudaEventCreateWithFlags(&lane.joint, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return lane;
}

Lane LanePool::take() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return make();
  const Lane lane = idle_.back();
  idle_.pop_back();
  return lane;
}

void LanePool::give_back(Lane lane) noexcept {
  const std::lock_guard lock(mutex_);
  idle_.push_back(lane);
}

CudaQueue::CudaQueue(const LaunchTraits& traits, LanePool& pool)
    : traits_(traits), pool_(pool), lane_(pool.take()) {}

CudaQueue::~CudaQueue() {
  constexpr std::chrono::seconds patience(10);
  const auto ended = [this] { return cudaStreamQuery(lane_.stream) != cudaErrorNotReady; };
  if (poll_until(ended, Clock::now() + patience))
    pool_.give_back(lane_);
  else
    log(LogLevel::warn, "a kernel has not ended within {} s; its CUDA stream is left behind",
        patience.count());
}

void CudaQueue::launch(const Launch& launch) { launch_team({&launch, 1}); }

void CudaQueue::launch_team(std::span<const Launch> team) {
  const Descriptor& call = team[0].args.call;
  const void* code = kernel_code(even(call.collective), call.algorithm, call.wire);
  Team parameters{.blocks = team[0].blocks, .members = {}};
  for (std::size_t i = 0; i < team.size(); ++i)
    parameters.members[i] = {team[i].view, team[i].args};
  void* arguments[] = {&parameters};

  cudaLaunchAttribute attributes[2];
  unsigned int count = 0;
  if (team.size() > 1 && traits_.cooperative) {
    attributes[count].id = cudaLaunchAttributeCooperative;
    attributes[count++].val.cooperative = 1;
  }
  if (traits_.remote_domain) {
    attributes[count].id = cudaLaunchAttributeMemSyncDomain;
    attributes[count++].val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned int>(team[0].blocks * static_cast<int>(team.size())));
  config.blockDim = dim3(block_threads);
  config.stream = lane_.stream;
  config.attrs = attributes;
  config.numAttrs = count;

  const OnDevice here(traits_.device);
  check(cudaLaunchKernelExC(&config, code, arguments), "cudaLaunchKernelExC");
}

void CudaQueue::copy(void* destination, const void* source, std::size_t bytes) {
  const OnDevice here(traits_.device);
  check(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, lane_.stream),
        "cudaMemcpyAsync");
}

void CudaQueue::zero(void* memory, std::size_t bytes) {
  const OnDevice here(traits_.device);
  check(cudaMemsetAsync(memory, 0, bytes, lane_.stream), "cudaMemsetAsync");
}

void CudaQueue::record(Event& event) {
  const OnDevice here(traits_.device);
  check(cudaEventRecordWithFlags(
            static_cast<CudaEvent&>(event).native(), lane_.stream,
            is_captured(lane_.stream) ? cudaEventRecordExternal : cudaEventRecordDefault),
        "cudaEventRecordWithFlags");
}

void CudaQueue::wait(Event& event) {
  const OnDevice here(traits_.device);
  check(
      cudaStreamWaitEvent(lane_.stream, static_cast<CudaEvent&>(event).native(),
                          is_captured(lane_.stream) ? cudaEventWaitExternal : cudaEventWaitDefault),
      "cudaStreamWaitEvent");
}

void CudaQueue::join(CudaQueue& other) {
  const OnDevice here(traits_.device);
  check(cudaEventRecord(other.lane_.joint, other.lane_.stream), "cudaEventRecord");
  check(cudaStreamWaitEvent(lane_.stream, other.lane_.joint, cudaEventWaitDefault),
        "cudaStreamWaitEvent");
}

bool CudaQueue::idle() {
  const OnDevice here(traits_.device);
  return is_done(cudaStreamQuery(lane_.stream), "cudaStreamQuery");
}

void CudaQueue::synchronize() {
  poll_until([this] { return idle(); });
}

void launch_teams(std::span<Queue* const> queues, std::span<const Launch> launches) {
  static std::mutex one_at_a_time;  // all threads' teams reach the GPU in one order
  const std::lock_guard lock(one_at_a_time);
  for (std::size_t begin = 0, end = 0; begin < launches.size(); begin = end) {
    while (end < launches.size() && end - begin < std::size_t{team_size} &&
           same_grid(launches[begin], launches[end]))
      ++end;
    auto& first = static_cast<CudaQueue&>(*queues[begin]);
    const auto others = queues.subspan(begin + 1, end - begin - 1);
    for (Queue* other : others) first.join(static_cast<CudaQueue&>(*other));
    first.launch_team(launches.subspan(begin, end - begin));
    for (Queue* other : others) static_cast<CudaQueue&>(*other).join(first);
  }
}

}  // namespace treering
