#include "kernels/exec/simt/fiber.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string>

#include "treering/error.hpp"

namespace treering::simt {
namespace {

// Sanitizers make frames larger, and need room to report.
constexpr std::size_t stack_bytes = (under_tsan || under_asan ? 256 : 64) << 10;
// Below each stack: an overflow faults instead of corrupting.
constexpr std::size_t guard_bytes = 4096;
constexpr std::size_t slab_stacks = 64;  // mapped at once
// Stacks begin at different lines, or all frames would compete for the same few cache sets.
constexpr std::size_t colours = 64, colour_bytes = 128;

struct Stack {
  std::byte* bottom;
  std::size_t bytes;
};

/// Stacks are never given back.
Stack new_stack() {
  static std::mutex mutex;
  static std::byte* slab = nullptr;
  static std::size_t used = slab_stacks;
  const std::lock_guard lock(mutex);
  if (used == slab_stacks) {
    void* fresh = mmap(nullptr, slab_stacks * stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED)
      throw Error(ErrorCode::out_of_memory, "no memory for the stacks of simulated threads: " +
                                                std::string(std::strerror(errno)) +
                                                "; use fewer blocks, or fewer threads in a block");
    slab = static_cast<std::byte*>(fresh);
    used = 0;
  }
  std::byte* const bottom = slab + used * stack_bytes;
  mprotect(bottom, guard_bytes, PROT_NONE);  // if refused (too many mappings), it works without
  const std::size_t colour = used++ % colours * colour_bytes;
  return {bottom + guard_bytes, stack_bytes - guard_bytes - colour};
}

}  // namespace

TREERING_UNSEEN void Fiber::enter(boost::context::detail::transfer_t origin) {
  Fiber& self = static_cast<const Switch*>(origin.data)->to;
  arrived(origin, nullptr);
  self.main_(self);
}

Fiber::Fiber(void (*main)(Fiber&)) : main_(main) {
  const Stack stack = new_stack();
  bottom_ = stack.bottom;
  size_ = stack.bytes;
  context_ =
      boost::context::detail::make_fcontext(stack.bottom + stack.bytes, stack.bytes, &Fiber::enter);
#ifdef TREERING_TSAN
  tsan_ = __tsan_create_fiber(0);
#endif
}

void Fiber::adopt() {
#ifdef TREERING_TSAN
  tsan_ = __tsan_get_current_fiber();
#endif
}

}  // namespace treering::simt
