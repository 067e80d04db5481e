#pragma once

#include <cstddef>
#include <cstdint>

namespace treering {

/// What one core fetches at a time. A post and a credit take one line each.
inline constexpr std::size_t line_bytes = 64;

/// To copy so much takes less time than a hand-shake about registered buffers.
inline constexpr std::size_t few_bytes = 1024;

/// Number (a power of two, at least 2) and size of the slots of every wire of a communicator.
struct WireShape {
  std::uint32_t slots;
  std::uint32_t slot_bytes;
  friend bool operator==(const WireShape&, const WireShape&) = default;
};

}  // namespace treering
