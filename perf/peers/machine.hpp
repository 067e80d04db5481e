#pragma once

// What the machine does at the moment, whatever the library: how near the cores of the ranks are,
// how fast all of them together copy. Called by all ranks of a contender at once.

#include "perf/peers/library.hpp"

namespace treering::perf {

/// Seconds of one symmetric flag exchange (each stores, then waits) between rank 0 and another: the
/// slowest of those that have a core of their own. The other ranks wait.
double probe_distance(const Seat&);

/// Bytes per second that all ranks copy at once, far beyond the caches; the better of memcpy and
/// streaming stores.
double copy_rate(const Seat&);

}  // namespace treering::perf
