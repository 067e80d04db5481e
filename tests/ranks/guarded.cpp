#include "tests/ranks/guarded.hpp"

#include <algorithm>
#include <cstring>

namespace treering::test {
namespace {

constexpr std::size_t guard_bytes = 256;
constexpr std::byte guard_value{0xa5}, poison{0x5a};

bool all_are(const std::byte* begin, const std::byte* end, std::byte value) {
  return std::all_of(begin, end, [=](std::byte b) { return b == value; });
}

}  // namespace

Guarded::Guarded(std::size_t bytes, bool registered, std::size_t offset)
    : begin_(guard_bytes + offset), bytes_(bytes) {
  const std::size_t all = begin_ + bytes_ + guard_bytes;
  if (registered)
    shared_.emplace(all);
  else
    own_.resize(all);
  base_ = registered ? shared_->as<std::byte>() : own_.data();
  std::memset(base_, static_cast<int>(guard_value), all);
  std::memset(data(), static_cast<int>(poison), bytes_);
}

bool Guarded::intact() const {
  const std::byte* end = base_ + begin_ + bytes_;
  return all_are(base_, base_ + begin_, guard_value) &&
         all_are(end, end + guard_bytes, guard_value);
}

bool Guarded::untouched() const {
  return intact() && all_are(base_ + begin_, base_ + begin_ + bytes_, poison);
}

}  // namespace treering::test
