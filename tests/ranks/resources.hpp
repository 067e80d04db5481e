#pragma once

// What a process holds, and what it may have left behind.

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

#include "treering/treering.hpp"

namespace treering::test {

/// Of this process, from /proc.
struct Resources {
  std::size_t descriptors, threads;
  std::size_t arena;     ///< bytes of shared memory that its arena has in use
  std::size_t resident;  ///< bytes of memory; no exact science
  static Resources now();
  /// After freeing what communicators that were destroyed earlier could not free yet.
  static Resources swept();
  /// The same, a moment later if more is held than before: ends of threads and processes are
  /// noticed a little later.
  static Resources swept(const Resources& before);

  std::string line() const;
  static Resources parse(const std::string& line);
};
void PrintTo(const Resources&, std::ostream*);

/// Names that could outlive the processes of a job: its abstract socket, and files of Treering's in
/// /dev/shm.
std::vector<std::string> leftovers(const UniqueId& job);

/// Process ids of this process's children.
std::vector<int> children();

/// Whether a sanitizer is on: it keeps memory that was freed.
constexpr bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace treering::test
