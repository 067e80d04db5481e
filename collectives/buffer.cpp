#include "collectives/buffer.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "kernels/exec/device.hpp"
#include "treering/treering.hpp"

namespace treering {
namespace {

/// All live Buffers: begin and bytes.
struct Live {
  std::shared_mutex mutex;
  std::map<const std::byte*, std::size_t> buffers;
};

Live& live() {
  static Live& all = *new Live;  // never destroyed: Buffers of static life may outlive it
  return all;
}

}  // namespace

bool buffer_holds(const void* memory, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  const std::shared_lock lock(live().mutex);
  const auto after = live().buffers.upper_bound(begin);
  if (after == live().buffers.begin()) return false;
  const auto& [start, length] = *std::prev(after);
  return begin + bytes <= start + length;
}

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  data_ = device().allocate(bytes);
  const std::unique_lock lock(live().mutex);
  live().buffers[static_cast<const std::byte*>(data_)] = bytes;
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
  {
    const std::unique_lock lock(live().mutex);
    live().buffers.erase(static_cast<const std::byte*>(data_));
  }
  device().deallocate(data_);
}

}  // namespace treering
