#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "kernels/exec/device.hpp"

namespace treering {

/// An event on the host: two counters, of records that were asked for and that were reached.
class HostEvent final : public Event {
 public:
  bool done() override;
  void synchronize() override;

  /// A new record; it is reached when reach() is called with its number.
  std::uint64_t promise();
  void reach(std::uint64_t record);
  /// The newest record that was asked for.
  std::uint64_t latest();
  /// Returns when that record has been reached.
  void await(std::uint64_t record);

 private:
  std::mutex mutex_;
  std::condition_variable reached_changed_;
  std::uint64_t promised_ = 0, reached_ = 0;
};

/// A queue on the host: a thread that takes one task after the other.
class HostQueue final : public Queue {
 public:
  /// `run`: how a launch is carried out on the queue's thread. Throws Error{system} if there is no
  /// thread.
  explicit HostQueue(std::function<void(const Launch&)> run);
  HostQueue(const HostQueue&) = delete;
  HostQueue& operator=(const HostQueue&) = delete;
  ~HostQueue() override;

  void launch(const Launch& launch) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  bool idle() override;
  void synchronize() override;

 private:
  void push(std::function<void()> task);
  void loop();

  std::function<void(const Launch&)> run_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // the first is being carried out
  bool leave_ = false;
  pid_t owner_;         // in whom the thread runs
  std::thread thread_;  // last: it uses the others
};

}  // namespace treering
