#pragma once

// Errors of the operating system in words, and the limit on open files, which many ranks meet
// first.

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "treering/error.hpp"

namespace treering {

/// The Error for a system call that has just failed (reads errno): "cannot `doing`: why; what to
/// do".
inline Error system_error(const std::string& doing) {
  const int why = errno;
  std::string message = "cannot " + doing + ": " + std::generic_category().message(why);
  if (why == EMFILE)
    message += "; this process has reached its limit of open files, raise it (ulimit -Hn)";
  if (why == ENFILE) message += "; the machine has reached its limit of open files (fs.file-max)";
  return Error(why == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::system, message);
}

/// Raises this process's limit of open files as far as it may, up to a million. Thread-safe; costs
/// two system calls.
inline void raise_descriptor_limit() noexcept {
  constexpr rlim_t enough = 1 << 20;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min(limit.rlim_max, enough);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace treering
