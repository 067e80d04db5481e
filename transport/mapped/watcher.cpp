#include "transport/mapped/watcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"

namespace treering {
namespace {

/// A descriptor that becomes readable when the process ends; empty if it has ended.
UniqueFd open_process(const ProcessIdentity& process) {
  const ProcessIdentity self = this_process();
  if (!same_host(process, self) || process.pid_namespace != self.pid_namespace)
    throw Error(
        ErrorCode::unsupported,
        fmt::format(
            "process {} cannot be watched: it runs on another machine or in a container that "
            "numbers its processes itself; let the containers share their process-id "
            "namespace (--pid)",
            process.pid));
  UniqueFd descriptor(
      static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (!descriptor && errno != ESRCH)
    throw system_error(fmt::format("watch process {} (pidfd_open)", process.pid));
  // In this order: what is open now keeps its start time, so a match means that it is the one we
  // want.
  if (descriptor && start_ticks(process.pid) != process.start_ticks) descriptor.reset();
  return descriptor;
}

struct Callback {
  std::function<void()> on_death;
  bool called = false;
};

struct Watched {
  ProcessIdentity process;
  UniqueFd descriptor;
  bool dead = false;
  std::map<std::uint64_t, Callback> callbacks{};  // by subscription
};

/// What the thread and the subscriptions share.
class Watch {
 public:
  Watch() : epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_ || !wake_) throw system_error("watch processes (epoll_create1, eventfd)");
    listen_to(wake_.get(), wake_key);
  }

  std::uint64_t add(const ProcessIdentity& process, std::function<void()> on_death) {
    const std::lock_guard lock(mutex_);
    Watched& watched = find_or_open(process);
    const std::uint64_t id = next_++;
    watched.callbacks.emplace(id, Callback{std::move(on_death)});
    if (watched.dead) wake();
    return id;
  }

  void remove(std::uint64_t id) {
    std::unique_lock lock(mutex_);
    for (auto it = watched_.begin(); it != watched_.end(); ++it) {
      Watched& watched = it->second;
      if (watched.callbacks.erase(id) == 0) continue;
      if (watched.callbacks.empty()) {
        if (!watched.dead)
          epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched.descriptor.get(), nullptr);
        watched_.erase(it);
      }
      break;
    }
    if (std::this_thread::get_id() != thread_) finished_.wait(lock, [&] { return running_ != id; });
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    wake();
  }

  void run() {
    std::unique_lock lock(mutex_);
    thread_ = std::this_thread::get_id();
    while (!stopped_) {
      lock.unlock();
      std::array<epoll_event, 16> events;
      const int count = epoll_wait(epoll_.get(), events.data(), events.size(), -1);
      lock.lock();
      for (int i = 0; i < count; ++i) note(events[static_cast<std::size_t>(i)].data.u64);
      while (!stopped_ && call_one(lock)) continue;
    }
  }

 private:
  static constexpr std::uint64_t wake_key = 0;

  void listen_to(int descriptor, std::uint64_t key) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      throw system_error("watch processes (epoll_ctl)");
  }

  Watched& find_or_open(const ProcessIdentity& process) {
    for (auto& [key, watched] : watched_)
      if (same_process(watched.process, process)) return watched;
    Watched fresh{process, open_process(process)};
    fresh.dead = !fresh.descriptor;
    const std::uint64_t key =
        next_++;  // unlike a descriptor never used again, so no event is mistaken
    if (!fresh.dead) listen_to(fresh.descriptor.get(), key);
    return watched_.emplace(key, std::move(fresh)).first->second;
  }

  void wake() { eventfd_write(wake_.get(), 1); }

  void note(std::uint64_t key) {
    eventfd_t ignored;
    if (key == wake_key) eventfd_read(wake_.get(), &ignored);
    const auto found = watched_.find(key);
    if (found == watched_.end() || found->second.dead) return;
    found->second.dead = true;
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.descriptor.get(), nullptr);
  }

  /// Calls one callback that is due, without the lock. False if there is none.
  bool call_one(std::unique_lock<std::mutex>& lock) {
    for (auto& [key, watched] : watched_) {
      if (!watched.dead) continue;
      for (auto& [id, callback] : watched.callbacks) {
        if (std::exchange(callback.called, true)) continue;
        running_ = id;
        std::function<void()> on_death = std::move(callback.on_death);
        lock.unlock();
        [&]() noexcept { on_death(); }();
        on_death = nullptr;  // what it holds goes before remove() returns
        lock.lock();
        running_ = 0;
        finished_.notify_all();
        return true;
      }
    }
    return false;
  }

  UniqueFd epoll_, wake_;
  std::mutex mutex_;
  std::condition_variable finished_;
  std::map<std::uint64_t, Watched> watched_;
  std::uint64_t next_ = wake_key + 1;
  std::uint64_t running_ = 0;  // the subscription whose callback runs
  std::thread::id thread_;
  bool stopped_ = false;
};

/// A thread that gets no signals: those are for the program's own threads.
std::thread start_quiet_thread(std::shared_ptr<Watch> watch) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  int failure = 0;
  try {
    thread = std::thread([watch = std::move(watch)] { watch->run(); });
  } catch (const std::system_error& error) {
    failure = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (errno = failure; failure != 0) throw system_error("start the thread that watches processes");
  pthread_setname_np(thread.native_handle(), "treering-watch");
  return thread;
}

}  // namespace

/// Owned by the subscriptions; the last one ends the thread.
class Watcher::Service {
 public:
  Service() : watch(std::make_shared<Watch>()), thread_(start_quiet_thread(watch)) {}
  ~Service() {
    if (!forked()) watch->stop();
    // A callback cannot wait for its own thread, which ends when it returns; a child has no such
    // thread.
    if (forked() || std::this_thread::get_id() == thread_.get_id())
      thread_.detach();
    else
      thread_.join();
  }

  bool forked() const { return getpid() != owner_; }

  const std::shared_ptr<Watch> watch;

 private:
  const pid_t owner_ = getpid();
  std::thread thread_;
};

Watcher::Subscription Watcher::watch(const ProcessIdentity& process,
                                     std::function<void()> on_death) {
  static std::mutex mutex;
  static std::weak_ptr<Service> current;
  std::shared_ptr<Service> service;
  {
    const std::lock_guard lock(mutex);
    service = current.lock();
    if (service == nullptr || service->forked()) {
      raise_descriptor_limit();
      service = std::make_shared<Service>();
      current = service;
    }
  }
  const std::uint64_t id = service->watch->add(process, std::move(on_death));
  return Subscription(std::move(service), id);
}

Watcher::Subscription::Subscription(std::shared_ptr<Service> service, std::uint64_t id) noexcept
    : service_(std::move(service)), id_(id) {}

Watcher::Subscription::Subscription(Subscription&& other) noexcept
    : service_(std::move(other.service_)), id_(other.id_) {}

Watcher::Subscription& Watcher::Subscription::operator=(Subscription&& other) noexcept {
  std::swap(service_, other.service_);
  std::swap(id_, other.id_);
  return *this;
}

Watcher::Subscription::~Subscription() {
  if (service_ != nullptr && !service_->forked()) service_->watch->remove(id_);
}

}  // namespace treering
