#pragma once

// Before first use the ranks of different processes try their mappings of each other's memory, both
// ways, with the device's own copies:
//
//     rank a's inbox                 rank b's inbox
//     left by a for b   ◄── read ──  b
//     written by b      ◄── write ── b           and the same with a and b exchanged
//
// All leave and write their marks; a barrier; all look, and tell all others which marks they did not
// find; then all wipe their own inbox. So everybody knows of every pair that failed. On a GPU the
// wires of such a pair move to host memory, which both map; a host has nothing else to offer.

#include "collectives/membership.hpp"
#include "transport/rendezvous/exchange.hpp"

namespace treering {

/// For all ranks, between their map() and connect(). Warns of each pair that failed, once. Throws
/// Error{system} that names them where there is no other way.
void verify(Membership& seat, Exchange& exchange);

}  // namespace treering
