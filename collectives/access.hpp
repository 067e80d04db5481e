#pragma once

#include "collectives/membership.hpp"
#include "treering/treering.hpp"

namespace treering {

/// The seat behind a communicator, for the library's own rooms and tests.
Membership& membership(Communicator&);

/// Communicator::create() on another device than the process's.
Communicator join_on(Device&, const UniqueId&, int size, int rank);

}  // namespace treering
