#pragma once

// What the command and the ranks of a contender (Treering, or a peer) say to each other, over a unix
// socket that keeps messages apart (SOCK_SEQPACKET). A rank that has no order sleeps in recvmsg().
//
//     rank                                  command
//      │ ── connects, hello: its rank ───────► │
//      │ ◄── join: how many; control memory ── │
//      │ ── ready: the library's version ────► │
//      │ ◄── time, check, probe or copy ────── │   to all ranks of one contender; it says
//      │ ── result, cannot or failure ───────► │   nothing to another until all have answered
//      │ ◄── end of the socket: the rank ends  │

#include <array>
#include <cstdint>
#include <string>

#include "perf/bench/cases.hpp"

namespace treering::perf {

/// First word of every message; whoever sends another is no rank of this version.
inline constexpr std::uint32_t protocol_magic = 0x74720001;

struct Order {
  enum class Kind : std::uint32_t {
    join,   ///< with the control memory's descriptor; answered by ready
    time,   ///< the case, rewriting inputs
    check,  ///< the case once, comparing every element
    probe,  ///< one flag exchange between two ranks
    copy,   ///< bytes that all ranks together copy in a second
  };
  std::uint32_t magic = protocol_magic;
  Kind kind{};
  std::int32_t ranks = 0;
  bool pin = true;
  std::int32_t case_number = -1;  ///< buffers last until it changes
  Case what{};
  std::int32_t warmups = 0, iterations = 1, calls = 1;
};

struct Answer {
  enum class Kind : std::uint32_t { hello, ready, result, cannot, failure };
  std::uint32_t magic = protocol_magic;
  Kind kind{};
  std::int32_t rank = 0;
  /// time: of one call, on the slowest rank, the median over iterations; probe: of one exchange.
  double seconds = 0;
  double total_seconds = 0;  ///< time: what the whole order took
  double rate = 0;           ///< copy: bytes per second
  std::uint64_t wrong = 0;   ///< check: elements on this rank
  Algorithm algorithm{};     ///< these three: Treering only
  WireType wire{};
  bool direct = false;
  std::array<char, 512> text{};  ///< ready: the version; failure: what went wrong

  void set_text(const std::string& words) {
    text.fill('\0');
    words.copy(text.data(), text.size() - 1);
  }
};

}  // namespace treering::perf
