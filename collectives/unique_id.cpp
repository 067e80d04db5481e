#include <span>

#include "transport/rendezvous/invitation.hpp"
#include "treering/treering.hpp"

namespace treering {

static_assert(Invitation::size == UniqueId::size);

namespace {

std::span<const std::byte> span_of(const void* bytes128) {
  return {static_cast<const std::byte*>(bytes128), UniqueId::size};
}

}  // namespace

UniqueId UniqueId::create() { return from_bytes(Invitation::create().bytes().data()); }

UniqueId UniqueId::derive(std::string_view words) {
  return from_bytes(Invitation::derive(words).bytes().data());
}

UniqueId UniqueId::parse(std::string_view text) {
  return from_bytes(Invitation::parse(text).bytes().data());
}

UniqueId UniqueId::from_bytes(const void* bytes128) {
  if (bytes128 == nullptr)
    throw Error(ErrorCode::invalid_argument,
                "`bytes128` is null; pass the 128 bytes of a unique id");
  UniqueId id;
  id.bytes_ = Invitation::from_bytes(span_of(bytes128)).bytes();
  return id;
}

std::string UniqueId::text() const { return Invitation::from_bytes(span_of(bytes_.data())).text(); }

}  // namespace treering
