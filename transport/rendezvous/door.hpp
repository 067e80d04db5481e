#pragma once

// How the ranks come together: rank 0 opens a door, a unix socket in the abstract name space (so
// there is no file, no port and no host name), and the others knock until it is there.
//
//     rank 3 ── hello: secret, version, "rank 3 of 8" ──► rank 0
//     rank 3 ◄── welcome, when all have come; or failed, with the Error for everyone ── rank 0
//
// Whoever runs as another user or does not know the secret is sent away without disturbing the
// others.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/rendezvous/channel.hpp"
#include "transport/rendezvous/deadline.hpp"
#include "transport/rendezvous/invitation.hpp"

namespace treering {

/// How a rank introduces itself. Members may be added at the end, so that versions can tell each
/// other apart.
struct Hello {
  std::array<std::byte, Invitation::secret_bytes> secret;
  std::array<char, 24> version;  ///< of the library
  std::int32_t rank;
  std::int32_t world_size;
};
Hello make_hello(const Invitation&, int world_size, int rank);

/// How long a rank waits beyond the time-out for rank 0 to tell why.
inline constexpr std::chrono::milliseconds grace{1000};

/// Rank 0: waits for all others. Returns a channel for each rank, not open at index 0; nothing if
/// somebody else is rank 0 already. Throws the Error that it has told to all who came.
std::optional<std::vector<Channel>> open_door(const Invitation&, int world_size,
                                              std::chrono::milliseconds timeout, const Look&);

/// The others: a channel to rank 0, once all have come. Throws rank 0's Error, or Error{timeout} if
/// there is no rank 0.
Channel knock(const Invitation&, int world_size, int rank, std::chrono::milliseconds timeout,
              const Look&);

}  // namespace treering
