#pragma once

// A collective library, as the loop that times it sees it: Treering and every peer.

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <string>

#include "perf/bench/control.hpp"
#include "perf/patterns.hpp"
#include "perf/peers/protocol.hpp"

namespace treering::perf {

/// Where a rank stands among those of its contender.
struct Seat {
  int rank, ranks;
  int cores;         ///< that the ranks share
  bool pin;          ///< the calling thread will be pinned when the library has been joined
  Control& control;  ///< through which the ranks may find one another
};

class Library {
 public:
  virtual ~Library() = default;
  virtual std::string version() const = 0;
  /// False if the library has no such collective, type or operator.
  virtual bool can(const Pattern&) const = 0;
  /// The call of this rank; returns when the output is there. Out of place, but a broadcast has one
  /// buffer. Throws.
  virtual void call(const Pattern&, const void* input, void* output) = 0;
  /// Memory of the kind that calls are timed with, aligned to a page.
  virtual std::shared_ptr<std::byte> allocate(std::size_t bytes);
  /// Adds to the answer how the last call was done.
  virtual void describe(Answer&) const {}
};

/// Becomes a member of the library's world.
using Join = std::function<std::unique_ptr<Library>(const Seat&)>;

/// The life of a rank: connects to the command, joins, obeys orders until the command ends it.
/// `words`: the address of the command and, unless the environment of an MPI tells, the rank.
/// Returns the exit status.
int attend(const std::vector<std::string>& words, const Join&);

}  // namespace treering::perf
