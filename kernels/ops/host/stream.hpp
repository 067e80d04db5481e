#pragma once

#include <cstddef>

namespace treering {

/// Copies past the caches: for data that nobody will read soon, or that exceeds them. Whole lines
/// of the destination are streamed, the ends are stored as usual. The caller ends a series of
/// copies with finish_streaming() (machine.hpp), before it raises a flag.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;

/// Bytes from `address` to the next line.
std::size_t bytes_to_line(const std::byte* address) noexcept;

}  // namespace treering
