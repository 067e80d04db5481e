#pragma once

// Which process is that, and does it run on the same machine? A process id alone does not tell: ids
// repeat over containers and over time.

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

namespace treering {

/// One process among all there are and were. Plain bytes, made to be sent to others.
struct ProcessIdentity {
  std::array<char, 40> boot_id;  ///< of the running kernel: the machine, since it was started
  std::uint64_t
      pid_namespace;  ///< inode: containers that number their processes themselves differ here
  std::int64_t pid;   ///< as that namespace numbers it
  std::uint64_t start_ticks;  ///< when it was started: tells apart those that had the same number

  friend auto operator<=>(const ProcessIdentity&, const ProcessIdentity&) = default;
};
static_assert(std::is_trivially_copyable_v<ProcessIdentity>);

/// The calling process; right in a forked child as well. Reads /proc: some 100 µs. Throws
/// Error{system}.
ProcessIdentity this_process();

/// When a process of this process's namespace was started; nothing if there is none of that number.
std::optional<std::uint64_t> start_ticks(std::int64_t pid);

/// True for one and the same process: pointers mean the same to both.
bool same_process(const ProcessIdentity&, const ProcessIdentity&) noexcept;
/// True if both run under one kernel: they can map each other's memory, if they can exchange
/// descriptors.
bool same_host(const ProcessIdentity&, const ProcessIdentity&) noexcept;

}  // namespace treering
