#pragma once

// Mutants: faults planted on purpose, to show that tests would find them. Off by default. Switch
// them while no kernel runs; they hold until heal().
//
//   weaken(Site::post)      posts are raised with a relaxed store
//   weaken(Site::element)   words with data and flag inside are torn: wrong values
//   no_acquire(Site::post)  a wait for a post ends with the relaxed poll that saw it; after this or a
//                           weak post, data may be stale: ThreadSanitizer reports a race, and
//                           Malice::stale_loads makes values wrong
//   skip_barrier({"a.hpp", 63})   no barrier where sync() or any() is called there; any() then
//                           tells only the thread's own vote: a race, a wrong value, a stuck kernel
//   skip_barrier(5)         each thread leaves out the barrier that it comes to after five others
//
// To try every barrier: watch_barriers(), run once, and skip each of barrier_sites(), or each
// number below barrier_count(), in turn.
//
// A report of ThreadSanitizer ends the process if asked to, so a test that expects one runs in a
// child: the same program with TSAN_OPTIONS="exitcode=66 halt_on_error=1", whose status is 66.

#include <source_location>
#include <string>
#include <vector>

#include "kernels/exec/group.hpp"

namespace treering::simt::mutants {

struct BarrierSite {
  std::string file;  ///< without folders, as in reports
  unsigned line;

  friend bool operator==(const BarrierSite&, const BarrierSite&) = default;
};

void weaken(Site);
void no_acquire(Site);
void skip_barrier(const BarrierSite&);
void skip_barrier(int number);
/// Notes from now on which barriers are called.
void watch_barriers();
/// In the order of their first call since watch_barriers(); the first 256.
std::vector<BarrierSite> barrier_sites();
/// How many a thread has called at most.
int barrier_count();
/// All mutants off.
void heal();

/// For SimtGroup.
struct Switches {
  bool weak[sites], no_acquire[sites];  ///< by Site
  bool barriers;                        ///< barriers are watched or skipped
};
extern Switches switches;
/// The barrier at this place is left out. `passed`: barriers that the thread has called. Asked only
/// if switches.barriers.
bool skips(const std::source_location&, int& passed);

}  // namespace treering::simt::mutants
