#pragma once

// What a process holds, and what it may have left behind.

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace treering::test {

/// Of this process, from /proc.
struct Resources {
  std::size_t descriptors, threads;
  std::size_t arena;     ///< bytes of shared memory that its arena has in use
  std::size_t resident;  ///< bytes of memory; no exact science
  static Resources now();
  /// The same, a moment later if there are more threads than before: those that have ended are
  /// listed a little longer.
  static Resources now_that(const Resources& before);

  std::string line() const;
  static Resources parse(const std::string& line);
};
void PrintTo(const Resources&, std::ostream*);

/// Names with "treering" in them that outlive a process: abstract sockets, files in /dev/shm and
/// /tmp.
std::vector<std::string> leftovers();

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
