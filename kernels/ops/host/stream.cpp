#include "kernels/ops/host/stream.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/ops/host/machine.hpp"

namespace treering {

std::size_t bytes_to_line(const std::byte* address) noexcept {
  return -reinterpret_cast<std::uintptr_t>(address) % cache_line;
}

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = std::min(bytes_to_line(to), bytes);
  const std::size_t lines_end = bytes - (bytes - head) % cache_line;
  std::memcpy(to, from, head);
  for (std::size_t at = head; at < lines_end; at += cache_line) stream_line(to + at, from + at);
  std::memcpy(to + lines_end, from + lines_end, bytes - lines_end);
}

}  // namespace treering
