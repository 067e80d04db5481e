#include "transport/rendezvous/invitation.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/system_error.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers in an invitation are little-endian");

constexpr char magic[] = "TREERING";
constexpr std::uint32_t current_version = 1;
constexpr std::string_view prefix = "treering-";
constexpr std::size_t version_at = 8, checksum_at = 12, name_at = 16, secret_at = 32, zeros_at = 64;
constexpr std::size_t name_bytes = secret_at - name_at;
static_assert(zeros_at - secret_at == Invitation::secret_bytes);

using Bytes = std::array<std::byte, Invitation::size>;

std::uint32_t word_at(const Bytes& bytes, std::size_t at) {
  std::uint32_t word;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

void put_word(Bytes& bytes, std::size_t at, std::uint32_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof word);
}

/// FNV-1a of everything but the checksum; no change of a single byte goes unnoticed.
std::uint32_t checksum(Bytes bytes) {
  put_word(bytes, checksum_at, 0);
  std::uint32_t sum = 2166136261;
  for (const std::byte byte : bytes) sum = (sum ^ static_cast<std::uint32_t>(byte)) * 16777619;
  return sum;
}

/// Magic and version, and zeros for the rest.
Bytes blank() {
  Bytes bytes{};
  std::memcpy(bytes.data(), magic, version_at);
  put_word(bytes, version_at, current_version);
  return bytes;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

unsigned digit_value(std::string_view text, std::size_t position) {
  const char c = text[position];
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("the unique id is damaged: character {} is no hexadecimal digit", position + 1));
}

}  // namespace

Invitation Invitation::create() {
  Invitation invitation;
  invitation.bytes_ = blank();
  // The kernel delivers up to 256 bytes whole or not at all.
  const ssize_t got = getrandom(invitation.bytes_.data() + name_at, zeros_at - name_at, 0);
  if (got != static_cast<ssize_t>(zeros_at - name_at))
    throw system_error("get random bytes (getrandom)");
  put_word(invitation.bytes_, checksum_at, checksum(invitation.bytes_));
  return invitation;
}

Invitation Invitation::derive(std::string_view words) {
  // No secret: it sets these hashes apart from any others of the same words.
  static constexpr std::string_view key = "treering unique id, version 1";
  static_assert(key.size() >= crypto_generichash_KEYBYTES_MIN);
  static_assert(zeros_at - name_at <= crypto_generichash_BYTES_MAX);
  const auto bytes_of = [](std::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  Invitation invitation;
  invitation.bytes_ = blank();
  if (sodium_init() < 0 ||
      crypto_generichash(reinterpret_cast<unsigned char*>(invitation.bytes_.data() + name_at),
                         zeros_at - name_at, bytes_of(words), words.size(), bytes_of(key),
                         key.size()) != 0)
    throw Error(ErrorCode::system, "libsodium does not work here, and ids are derived with it");
  put_word(invitation.bytes_, checksum_at, checksum(invitation.bytes_));
  return invitation;
}

Invitation Invitation::from_bytes(std::span<const std::byte> bytes) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "this is no valid unique id: " + why +
                                                 "; pass on all bytes of the one that was created");
  };
  if (bytes.size() != size)
    refuse(fmt::format("it has {} bytes instead of {}", bytes.size(), size));
  Invitation invitation;
  std::copy(bytes.begin(), bytes.end(), invitation.bytes_.begin());
  if (std::memcmp(bytes.data(), magic, version_at) != 0) refuse("it does not begin like one");
  const std::uint32_t version = word_at(invitation.bytes_, version_at);
  if (version != current_version)
    refuse(fmt::format("its version is {}, this library knows {}", version, current_version));
  if (word_at(invitation.bytes_, checksum_at) != checksum(invitation.bytes_))
    refuse("its checksum is wrong, so a part of it was changed");
  return invitation;
}

Invitation Invitation::parse(std::string_view text) {
  constexpr std::string_view white = " \t\r\n\v\f";
  constexpr std::size_t digits = 2 * (zeros_at - version_at);
  const std::size_t begin = std::min(text.find_first_not_of(white), text.size());
  text = text.substr(begin, text.find_last_not_of(white) + 1 - begin);
  if (!text.starts_with(prefix))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a unique id begins with \"{}\", this text with \"{}\"", prefix,
                            text.substr(0, prefix.size())));
  if (text.size() != prefix.size() + digits)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the unique id has {} characters instead of {}; was it cut short, or is there "
                    "something else in that text?",
                    text.size(), prefix.size() + digits));
  Bytes bytes = blank();
  for (std::size_t i = 0; i < digits / 2; ++i) {
    const std::size_t position = prefix.size() + 2 * i;
    bytes[version_at + i] =
        static_cast<std::byte>(digit_value(text, position) << 4 | digit_value(text, position + 1));
  }
  return from_bytes(bytes);
}

std::string Invitation::text() const {
  return std::string(prefix) +
         hexadecimal(std::span(bytes_).subspan(version_at, zeros_at - version_at));
}

std::string Invitation::socket_name() const {
  return std::string(prefix) + hexadecimal(std::span(bytes_).subspan(name_at, name_bytes));
}

std::span<const std::byte, Invitation::secret_bytes> Invitation::secret() const noexcept {
  return std::span(bytes_).subspan<secret_at, secret_bytes>();
}

}  // namespace treering
