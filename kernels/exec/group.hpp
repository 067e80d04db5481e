#pragma once

// The thread group: the only thing kernels know of the machine they run on.
//
// A kernel is a template over a Group and gets one by reference. All threads of a block hold a group of
// that block. The three executions each have one: HostGroup (one thread, so loops over it are plain
// loops), SimtGroup (fibers under a seeded scheduler), CudaGroup (CUDA threads).
//
//   rank(), size()      this thread's number in the block, and the number of threads; size() is a
//                       constant 1 on the host
//   block(), blocks()   which block of this rank's launch this is, and of how many
//   is_leader()         true for the one thread that polls and raises flags
//   sync()              block barrier, and memory barrier within the block
//   any(p)              sync(), and true for all threads if `p` was true for one
//   raise(what, flag, v) by the leader alone: release-store of a flag, after a sync()
//   acquire(what, flag)  by the leader, once a relaxed poll has seen what it waited for: acquire-load, so
//                       that this block may read what the peer wrote before it raised the flag
//   put(word, v)        stores a word that holds data and its own flag: at once, but in no order
//   pause(what, peer, turn)  rest between two polls of a flag of `peer`; true when the wait has dragged
//                       on enough for a look at the abort word and the boards. `turn` counts from 0.
//   settle_stores()     orders this thread's non-temporal stores before its next raise()
//   shared<T>()         one T per block, for a T of at most `shared_bytes`, uninitialised
//   enter(t), try_enter(t), leave(t)  by the leader: keeps other launches of this rank out, where those
//                       may run at the same time (host); elsewhere try_enter() is true

#include <cstddef>
#include <cstdint>

namespace treering {

/// What a flag or a wait is about: named in reports, and the handle by which tests break one on purpose.
enum class Site : std::uint8_t {
  post,
  credit,
  mail,
  mail_credit,
  reply,
  freight,
  freight_credit,
  element
};
inline constexpr int sites = 8;

inline const char* name(Site site) {
  constexpr const char* names[sites] = {"post",  "credit",  "mail",           "mail credit",
                                        "reply", "freight", "freight credit", "element"};
  return names[static_cast<int>(site)];
}

inline constexpr std::size_t shared_bytes = 2048;

/// A lock among launches of one rank; zeros at first.
struct Turnstile {
  std::uint64_t held;
};

}  // namespace treering
