#pragma once

// What the ranks of one job share before they know of each other; the content of
// treering::UniqueId.
//
//     byte 0      8         12         16          32            64           128
//          │ magic │ version │ checksum │ name      │ secret       │ zeros       │
//
// The name is that of the socket where rank 0 receives the others, and everybody on the machine can
// see it. The secret is shown to rank 0 only, and proves that a visitor was invited.

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace treering {

class Invitation {
 public:
  static constexpr std::size_t size = 128;
  static constexpr std::size_t secret_bytes = 32;

  /// A new one, from the kernel's random numbers. Throws Error{system} if there are none.
  static Invitation create();
  /// The one that belongs to these words: the same for the same words, another for all others.
  static Invitation derive(std::string_view words);
  /// From bytes(). Throws Error{invalid_argument} that says what is wrong: length, magic, version,
  /// checksum.
  static Invitation from_bytes(std::span<const std::byte>);
  /// From text(), with white space around it or not. Throws Error{invalid_argument} that says where
  /// it is wrong.
  static Invitation parse(std::string_view text);

  /// "treering-" and 112 hexadecimal digits.
  std::string text() const;
  const std::array<std::byte, size>& bytes() const noexcept { return bytes_; }

  /// Name of rank 0's socket in the abstract name space.
  std::string socket_name() const;
  std::span<const std::byte, secret_bytes> secret() const noexcept;

 private:
  Invitation() = default;
  std::array<std::byte, size> bytes_{};
};

}  // namespace treering
