#pragma once

// Boards: who calls what. Each rank has one, and every peer can read it.
//
// A call has a sequence number and a descriptor. Before anything else a rank writes both on its
// board, in entry (sequence mod 8). The *call word* is the number's low half and the descriptor's
// hash in 64 bits; it also travels in every post, and is compared before a byte of the message is
// used. A rank that waits too long compares its peer's board. An entry with another sequence number
// proves nothing.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/exec/atomics.hpp"
#include "kernels/exec/qualifiers.hpp"
#include "kernels/wire/post.hpp"
#include "treering/types.hpp"

namespace treering {

/// What must be equal on all ranks of a call.
struct Descriptor {
  Collective collective;
  DataType type;
  ReduceOp op;
  Algorithm algorithm;  ///< differs only if a user forced different ones
  std::uint16_t root;   ///< 0 for collectives that have none
  WireType wire;
  std::uint64_t count;   ///< of uneven parts: all of them together
  std::uint32_t chunk;   ///< elements of one message: agreed by the plan
  std::uint32_t splits;  ///< hash of the parts' sizes, where all ranks know all of them

  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};
static_assert(sizeof(Descriptor) == 24);
inline constexpr int descriptor_words = sizeof(Descriptor) / sizeof(std::uint64_t);

/// Spreads 64 bits over all of them: splitmix64's finaliser, of a state that moves on.
TREERING_PORTABLE constexpr std::uint64_t scramble(std::uint64_t mix) {
  mix += 0x9e3779b97f4a7c15;
  mix = (mix ^ (mix >> 30)) * 0xbf58476d1ce4e5b9;
  mix = (mix ^ (mix >> 27)) * 0x94d049bb133111eb;
  return mix ^ (mix >> 31);
}

/// 32 bits that differ for different descriptors, but for a chance of 2⁻³².
TREERING_PORTABLE inline std::uint32_t hash(const Descriptor& call) {
  const std::uint64_t head =
      static_cast<std::uint64_t>(call.collective) | static_cast<std::uint64_t>(call.type) << 8 |
      static_cast<std::uint64_t>(call.op) << 16 | static_cast<std::uint64_t>(call.algorithm) << 24 |
      static_cast<std::uint64_t>(call.root) << 32 | static_cast<std::uint64_t>(call.wire) << 48;
  const std::uint64_t tail = call.chunk | static_cast<std::uint64_t>(call.splits) << 32;
  return static_cast<std::uint32_t>(scramble(scramble(scramble(head) ^ call.count) ^ tail));
}

TREERING_PORTABLE inline std::uint64_t call_word(std::uint64_t sequence, std::uint32_t hash) {
  return sequence << 32 | hash;
}

/// True if both words belong to the same sequence number.
TREERING_PORTABLE inline bool same_call(std::uint64_t a, std::uint64_t b) {
  return a >> 32 == b >> 32;
}

struct alignas(line_bytes) BoardEntry {
  std::uint64_t word;  ///< 0 before the first call
  std::uint64_t descriptor[descriptor_words];
};

/// More than a wire has posts: so far ahead is who sends short messages, and its peers still find the call they are at.
inline constexpr int board_entries = 16;

/// A message and the receive that it matched, but does not fit. Written by the receiver.
struct alignas(line_bytes) Misfit {
  std::uint64_t valid;  ///< 1: the rest counts; raised last
  std::uint64_t sender, receiver, tag;
  std::uint64_t sent_type, sent_bytes;
  std::uint64_t expected_type, expected_bytes;
};

/// Two ranks that do not agree on the size of what one sends the other: the call, 0 if there is none; who; in bytes
/// what is sent, and what is expected. Both find it.
struct alignas(line_bytes) SizeConflict {
  std::uint64_t call, sender, receiver, sent, expected;
};

struct Board {
  BoardEntry entries[board_entries];
  Misfit misfit;
  Flag failed;  ///< 1: a call of this rank failed; raised by its kernels
  Flag cause;   ///< why the communicator is broken, once this rank's host knows (the guard's code)
  SizeConflict conflict;  ///< what this rank's kernels found, if that is why they failed
  Flag closed;            ///< 1: this rank destroyed its communicator
  Flag abort;  ///< 1: this rank's waits end; raised by its own host, or a peer's that has a cause
};

/// Writes a call on the board. Without order, since every release costs a GPU a round trip: readers
/// tell a torn entry by its hash.
TREERING_DEVICE void publish(Board& board, std::uint64_t word, const Descriptor& call) {
  BoardEntry& entry = board.entries[(word >> 32) % board_entries];
  std::uint64_t words[descriptor_words];
  memcpy(words, &call, sizeof call);
  for (int i = 0; i < descriptor_words; ++i) store_relaxed(entry.descriptor[i], words[i]);
  store_relaxed(entry.word, word);
}

/// Reads the entry of a sequence number; the word is 0 if the board shows another call there.
inline std::uint64_t read(const Board& board, std::uint64_t sequence, Descriptor& call) {
  const BoardEntry& entry = board.entries[sequence % board_entries];
  std::uint64_t words[descriptor_words];
  const std::uint64_t word = load_relaxed(entry.word);
  for (int i = 0; i < descriptor_words; ++i) words[i] = load_relaxed(entry.descriptor[i]);
  std::memcpy(&call, words, sizeof call);
  return word == call_word(sequence, hash(call)) ? word : 0;
}

}  // namespace treering
