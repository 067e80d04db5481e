#pragma once

// A fiber: a stack, and the place where its execution rests. Fibers hand over to one another
// directly; whoever ran first, an OS thread on its own stack, is a fiber like the others as long as
// that lasts.

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "kernels/exec/simt/sanitizers.hpp"

namespace treering::simt {

class Fiber {
 public:
  /// Stands for the OS thread that calls adopt().
  Fiber() = default;
  /// A fiber with a stack of its own, that will run main(*this), which must not return. Stacks are
  /// meant to be reused: a fiber is never destroyed. Throws Error{out_of_memory}.
  explicit Fiber(void (*main)(Fiber&));
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// This fiber is the OS thread that calls.
  void adopt();

  /// By the running fiber: rests here, and runs `next` where that one rests.
  void switch_to(Fiber& next);

 private:
  struct Switch {
    Fiber& from;
    Fiber& to;
  };
  static void enter(boost::context::detail::transfer_t);
  static void arrived(boost::context::detail::transfer_t, void* fake_stack);

  void* context_ = nullptr;  // where it rests
  void (*main_)(Fiber&) = nullptr;
  void* tsan_ = nullptr;  // how ThreadSanitizer calls it
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
};

TREERING_UNSEEN inline void Fiber::switch_to(Fiber& next) {
  Switch change{*this, next};
  void* fake_stack = nullptr;
#ifdef TREERING_TSAN
  __tsan_switch_to_fiber(next.tsan_, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef TREERING_ASAN
  __sanitizer_start_switch_fiber(&fake_stack, next.bottom_, next.size_);
#endif
  arrived(boost::context::detail::jump_fcontext(next.context_, &change), fake_stack);
}

/// On the new stack: notes where the fiber before rests.
TREERING_UNSEEN inline void Fiber::arrived(boost::context::detail::transfer_t origin,
                                           [[maybe_unused]] void* fake_stack) {
  Fiber& from = static_cast<const Switch*>(origin.data)->from;
  from.context_ = origin.fctx;
#ifdef TREERING_ASAN
  // Tells, by the way, where the stack of an adopted OS thread lies.
  __sanitizer_finish_switch_fiber(fake_stack, &from.bottom_, &from.size_);
#endif
}

}  // namespace treering::simt
