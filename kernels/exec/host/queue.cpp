#include "kernels/exec/host/queue.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "treering/error.hpp"

namespace treering {

bool HostEvent::done() {
  const std::lock_guard lock(mutex_);
  return reached_ == promised_;
}

void HostEvent::synchronize() { await(latest()); }

std::uint64_t HostEvent::latest() {
  const std::lock_guard lock(mutex_);
  return promised_;
}

void HostEvent::await(std::uint64_t record) {
  std::unique_lock lock(mutex_);
  reached_changed_.wait(lock, [&] { return reached_ >= record; });
}

std::uint64_t HostEvent::promise() {
  const std::lock_guard lock(mutex_);
  return ++promised_;
}

void HostEvent::reach(std::uint64_t record) {
  const std::lock_guard lock(mutex_);
  if (record > reached_) reached_ = record;
  reached_changed_.notify_all();
}

HostQueue::HostQueue(std::function<void(const Launch&)> run) try
    : run_(std::move(run)), owner_(getpid()), thread_([this] { loop(); }) {
} catch (const std::system_error& error) {
  throw Error(ErrorCode::system,
              fmt::format("cannot start a thread for a stream: {}; use fewer streams, or raise the "
                          "limits on threads and address space (ulimit -u, -v)",
                          error.code().message()));
}

HostQueue::~HostQueue() {
  if (getpid() != owner_) {  // the thread stayed in the process that this one was forked from,
    new (&changed_) std::condition_variable;  // and this condition would wait for it
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    leave_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void HostQueue::launch(const Launch& launch) {
  push([this, launch] { run_(launch); });
}

void HostQueue::copy(void* destination, const void* source, std::size_t bytes) {
  push([=] { std::memcpy(destination, source, bytes); });
}

void HostQueue::record(Event& event) {
  auto& target = static_cast<HostEvent&>(event);
  push([&target, record = target.promise()] { target.reach(record); });
}

void HostQueue::wait(Event& event) {
  auto& target = static_cast<HostEvent&>(event);
  push([&target, record = target.latest()] { target.await(record); });
}

bool HostQueue::idle() {
  const std::lock_guard lock(mutex_);
  return tasks_.empty();
}

void HostQueue::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty(); });
}

void HostQueue::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void HostQueue::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return leave_ || !tasks_.empty(); });
    if (tasks_.empty()) return;  // leaving, and everything is done
    const std::function<void()> task = std::move(tasks_.front());
    lock.unlock();
    task();
    lock.lock();
    tasks_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace treering
