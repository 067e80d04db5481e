#pragma once

// What ranks tell the command while it runs. Each has a pipe of its own; the end of the pipe is the
// end of the rank, however it came.

#include <array>
#include <string>

#include "treering/treering.hpp"

namespace treering::perf {

/// One of the two halves of a row: out of place or in place.
struct Measurement {
  bool measured = false;  ///< false: there is no such variant (barrier, in place)
  double seconds = 0;     ///< of one call, on the slowest rank
  std::uint64_t wrong = 0;
  std::uint64_t out_of_bounds = 0;  ///< guard bytes that were overwritten
  Algorithm algorithm{};
  bool direct = false;
  WireType wire{};
};

struct Message {
  enum class Kind {
    hello,    ///< text: the rank's device
    row,      ///< the next case's result; from rank 0 only
    failure,  ///< text: what went wrong
    done,     ///< all cases are through
  };
  Kind kind{};
  bool consequence = false;  ///< a failure that another rank's failure has caused
  Measurement out_of_place, in_place;
  std::array<char, 2048> text{};

  /// With as much of the text as fits.
  static Message with_text(Kind, const std::string& text, bool consequence = false);
};

/// Writes the whole message, or nothing if nobody reads any more; never throws.
void send(int pipe, const Message&) noexcept;
/// False at the end of the pipe.
bool receive(int pipe, Message&) noexcept;

}  // namespace treering::perf
