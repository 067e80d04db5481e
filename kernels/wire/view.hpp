#pragma once

// What a kernel is given: its communicator, as plain data in device memory, and the call's
// arguments.

#include <cstddef>
#include <cstdint>

#include "kernels/wire/board.hpp"
#include "kernels/wire/mail.hpp"
#include "kernels/wire/post.hpp"
#include "plan/chunks.hpp"

namespace treering {

/// Why a kernel gave up.
enum class Failure : std::uint8_t {
  none,
  mismatch,     ///< the peer's call word differs from ours
  sizes,        ///< the peer sends more or less than we expect
  peer_failed,  ///< the peer's board says that its communicator is broken
  peer_closed,  ///< the peer left
  aborted,      ///< our own abort word was raised
};

/// What a block leaves behind for the host. `failure` is raised last.
struct alignas(line_bytes) Verdict {
  std::uint64_t failure;  ///< a Failure
  std::uint64_t peer;
  std::uint64_t sequence;
  std::uint64_t direct;  ///< 1: the latest call accessed the ranks' buffers directly
};

inline constexpr int region_count = 16;

/// A peer's memory as seen from this rank: base address of each of its registered regions.
struct PeerRegions {
  std::byte* base[region_count];
};

/// Everything that stays the same from call to call. One per rank.
struct RankView {
  std::int32_t rank, size, channels;
  WireShape shape;
  Edge* edges;           ///< [channels][size]: edge to rank p on channel c is edges[c * size + p]
  LlEdge* ll_edges;      ///< [channels][size]
  Board* board;          ///< this rank's own
  Board* const* boards;  ///< [size]: every rank's; null where it cannot be read
  const PeerRegions* regions;  ///< [size]
  std::uint64_t* sequence;     ///< [channels]: calls that this block has completed
  std::uint64_t* broken;       ///< number of the call that failed, if one did: later ones are void
  const Flag* abort;           ///< on this rank's board
  Verdict* verdicts;   ///< [channels + 1], host-visible; the last: of point-to-point messages
  PostOffice* office;  ///< for point-to-point messages
  /// Host: polls before a wait yields its core; few where ranks outnumber cores.
  std::uint32_t spins;
};

/// Where a reference of `rank` leads.
TREERING_DEVICE std::byte* resolve(const RankView& view, int rank, Reference reference) {
  const std::uint64_t region = reference >> reference_offset_bits;
  const std::uint64_t offset = reference & ((std::uint64_t{1} << reference_offset_bits) - 1);
  return view.regions[rank].base[region] + offset;
}

/// One call of one rank.
struct CallArgs {
  Descriptor call;
  const std::byte* input;
  std::byte* output;
  Reference input_reference, output_reference;
  /// [size]: where each rank's part lies. Null: `count` elements each, one after the other.
  const Chunk* input_parts;
  const Chunk* output_parts;
  std::uint64_t scale;   ///< for premul_sum: by what this rank's input counts (scale_bits())
  std::uint32_t hash;    ///< hash(call)
  bool streaming;        ///< bypass the caches when storing results (host): the data exceeds them
  bool streaming_slots;  ///< the same when filling slots: the peer's core is far
  bool unregistered;     ///< the ranks said so of all buffers: nobody offers any
};

}  // namespace treering
