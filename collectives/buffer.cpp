#include "collectives/buffer.hpp"

#include <utility>

#include "collectives/memory_runs.hpp"
#include "kernels/exec/device.hpp"
#include "treering/treering.hpp"

namespace treering {
namespace {

MemoryRuns& live() {
  static MemoryRuns& all = *new MemoryRuns;  // never destroyed: Buffers of static life outlive it
  return all;
}

}  // namespace

bool buffer_holds(const void* memory, std::size_t bytes) { return live().hold(memory, bytes); }

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = device().allocate(bytes);
  live().add(data_, bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  live().remove(data_);
  device().deallocate(data_);
}

}  // namespace treering
