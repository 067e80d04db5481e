#pragma once

#include "collectives/membership.hpp"
#include "treering/treering.hpp"

namespace treering {

/// The seat behind a communicator, for the library's own rooms and tests.
Membership& membership(Communicator&);

}  // namespace treering
