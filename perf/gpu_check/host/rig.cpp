#include "perf/gpu_check/host/rig.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/system_error.hpp"
#include "kernels/exec/device.hpp"

namespace treering::gpu_check {

/// Tests let the host stand in for several GPUs.
int machines(OnHost) {
  const char* pretended = std::getenv("GPU_CHECK_PRETEND");
  return pretended == nullptr ? 1 : std::max(std::atoi(pretended), 1);
}

namespace on_host {
namespace {

std::uint64_t* map(int descriptor, std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED) throw system_error("map shared memory");
  return static_cast<std::uint64_t*>(at);
}

int shared_memory(std::size_t bytes) {
  const int descriptor = memfd_create("treering-gpu-check", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    throw system_error("make shared memory");
  return descriptor;
}

}  // namespace

void Rig::describe(Findings& findings) const {
  findings.text("device", device().describe());
  findings.number("number", device_);
  findings.number("cores", std::thread::hardware_concurrency());
}

std::uint64_t* Rig::words(std::size_t count) {
  constexpr std::align_val_t alignment{256};
  void* memory = ::operator new(count * sizeof(std::uint64_t), alignment);
  return static_cast<std::uint64_t*>(std::memset(memory, 0, count * sizeof(std::uint64_t)));
}

std::pair<std::uint64_t*, std::uint64_t*> Rig::two_addresses(std::size_t count) {
  const std::size_t bytes = count * sizeof(std::uint64_t);
  const int descriptor = shared_memory(bytes);
  return {map(descriptor, bytes), map(descriptor, bytes)};
}

std::uint64_t* Rig::share(Sharing, std::size_t count, Shared& shared) {
  shared.bytes = count * sizeof(std::uint64_t);
  shared.descriptor = shared_memory(shared.bytes);
  return map(shared.descriptor, shared.bytes);
}

std::uint64_t* Rig::open(Sharing, const Shared& shared) {
  return map(shared.descriptor, shared.bytes);
}

void Rig::copy(Lane& lane, void* to, const void* from, std::size_t bytes) {
  lane.push([=] { std::memcpy(to, from, bytes); });
}

std::vector<Action> actions() {
  return {
      {"malloc", [](Rig& rig) { return [&rig] { rig.device_words(1024); }; }},
      {"stream_create", [](Rig& rig) { return [&rig] { rig.lane(); }; }},
  };
}

}  // namespace on_host
}  // namespace treering::gpu_check
