#include "kernels/exec/host/crew.hpp"

#include <system_error>

namespace treering {

/// A thread that does one thing at a time when told to.
struct Crew::Worker {
  Worker() : thread([this] { loop(); }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    tell([this] { leave = true; });
    thread.join();
  }

  void start(const std::function<void(int)>& block, int number) {
    tell([&] { work = &block, which = number; });
  }

  void finish() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return work == nullptr; });
  }

 private:
  template <class Change>
  void tell(Change change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return leave || work != nullptr; });
      if (leave) return;
      lock.unlock();
      (*work)(which);
      lock.lock();
      work = nullptr;
      changed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  const std::function<void(int)>* work = nullptr;
  int which = 0;
  bool leave = false;
  std::thread thread;  // last: it uses the others
};

Crew::Crew() = default;
Crew::~Crew() = default;

/// Null if the system has no thread to give.
std::unique_ptr<Crew::Worker> Crew::hire() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    try {
      return std::make_unique<Worker>();
    } catch (const std::system_error&) {
      return nullptr;
    }
  }
  std::unique_ptr<Worker> worker = std::move(idle_.back());
  idle_.pop_back();
  return worker;
}

void Crew::run(int blocks, const std::function<void(int)>& block) {
  std::vector<std::unique_ptr<Worker>> others;
  int next = 1;
  for (; next < blocks; ++next) {
    std::unique_ptr<Worker> worker = hire();
    if (worker == nullptr) break;
    worker->start(block, next);
    others.push_back(std::move(worker));
  }
  block(0);
  // What found no thread comes afterwards: a block waits for its like on other ranks only.
  for (; next < blocks; ++next) block(next);
  for (auto& worker : others) worker->finish();
  const std::lock_guard lock(mutex_);
  for (auto& worker : others) idle_.push_back(std::move(worker));
}

}  // namespace treering
