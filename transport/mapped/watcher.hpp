#pragma once

// Notices the death of other processes, at once: the kernel makes a descriptor of the process
// (pidfd) readable, and one thread waits for all of them. The thread lives from the first
// subscription to the last.

#include <cstdint>
#include <functional>
#include <memory>

#include "transport/mapped/process.hpp"

namespace treering {

class Watcher {
  class Service;

 public:
  /// While it lives, its callback may be called. Move-only.
  ///
  /// Once the destructor has returned, the callback is not running and will not run. It may be
  /// destroyed from within any callback, its own included; then it does not wait for the callback
  /// that destroys it. In a forked child destruction does nothing.
  class Subscription {
   public:
    Subscription() noexcept = default;
    Subscription(Subscription&&) noexcept;
    Subscription& operator=(Subscription&&) noexcept;
    ~Subscription();

   private:
    friend class Watcher;
    Subscription(std::shared_ptr<Service>, std::uint64_t id) noexcept;
    std::shared_ptr<Service> service_;
    std::uint64_t id_ = 0;
  };

  /// Calls `on_death` once, on the watcher's thread, when the process has ended; soon, if it has
  /// ended already or its number belongs to another process by now. The callback must not throw,
  /// and not wait for threads that subscribe. Thread-safe. Throws Error{unsupported} for a process
  /// of another machine or process-id namespace, Error{system} if the limit of open files is
  /// reached.
  [[nodiscard]] static Subscription watch(const ProcessIdentity&, std::function<void()> on_death);
};

}  // namespace treering
