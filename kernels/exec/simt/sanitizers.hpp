#pragma once

// What the sanitizers must be told, for they know threads but not fibers. Without them all this is
// nothing.
//
//   ThreadSanitizer sees every fiber as a thread. Nothing is ordered between them but by the flags
//   of the kernels and by the tags below: launches and block barriers. The scheduler's own
//   variables, which all fibers share, are kept out of its sight: functions that touch them are
//   marked TREERING_UNSEEN, and use plain arrays and pointers, since a function of the standard
//   library would be seen again.
//
//   AddressSanitizer must know on which stack it is.

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define TREERING_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TREERING_TSAN
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TREERING_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TREERING_ASAN
#endif
#endif

#ifdef TREERING_TSAN
#include <sanitizer/tsan_interface.h>
#define TREERING_UNSEEN __attribute__((no_sanitize("thread")))
#else
#define TREERING_UNSEEN
#endif

#ifdef TREERING_ASAN
#include <sanitizer/common_interface_defs.h>
/// For what reads on purpose beyond what a kernel may.
#define TREERING_UNCHECKED __attribute__((no_sanitize("address")))
#else
#define TREERING_UNCHECKED
#endif

namespace treering::simt {

#ifdef TREERING_TSAN
inline constexpr bool under_tsan = true;
#else
inline constexpr bool under_tsan = false;
#endif
#ifdef TREERING_ASAN
inline constexpr bool under_asan = true;
#else
inline constexpr bool under_asan = false;
#endif

/// Orders memory between fibers: what came before a release() comes before what follows an
/// acquire().
class Tag {
 public:
#ifdef TREERING_TSAN
  TREERING_UNSEEN void release() { __tsan_release(this); }
  TREERING_UNSEEN void acquire() { __tsan_acquire(this); }
#else
  void release() {}
  void acquire() {}
#endif
 private:
  [[maybe_unused]] char address_ = 0;
};

}  // namespace treering::simt
