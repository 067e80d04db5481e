#pragma once

// How threads of a group read and write buffers: a pack at a time, which is one load or store of up
// to 16 bytes. All data that another rank may write meanwhile is reached through these two
// functions.
//
// On a GPU they must stay ordinary loads and stores: what the compiler takes for constant
// (`__restrict__`,
// `__ldg`, a pointer to const whose data it can prove unchanged) it reads past the coherent caches.
// An execution that wants to know of every access overloads them for its group.

#include <cstddef>

#include "kernels/exec/qualifiers.hpp"

namespace treering {

inline constexpr std::size_t pack_bytes = 16;

template <class T, int lanes>
struct alignas(sizeof(T) * lanes) Pack {
  T lane[lanes];
};

/// `address` is aligned to P, a Pack.
template <class P, class Group>
TREERING_DEVICE P load_pack(Group&, const std::byte* address) {
  P pack;
  __builtin_memcpy(&pack, __builtin_assume_aligned(address, alignof(P)), sizeof(P));
  return pack;
}
template <class P, class Group>
TREERING_DEVICE void store_pack(Group&, std::byte* address, const P& pack) {
  __builtin_memcpy(__builtin_assume_aligned(address, alignof(P)), &pack, sizeof(P));
}

}  // namespace treering
