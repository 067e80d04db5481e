// The watcher: who dies is reported, who lives is not, and nothing is left behind.

#include "transport/mapped/watcher.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

using namespace std::chrono_literals;

/// A process that waits to be killed.
class Child {
 public:
  Child() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    hold_ = UniqueFd(ends[1]);
    pid_ = fork();
    if (pid_ == 0) {
      hold_.reset();
      char byte;
      _exit(read(ends[0], &byte, 1) == 1 ? byte : 0);
    }
    close(ends[0]);
    identity_ = this_process();
    identity_.pid = pid_;
    identity_.start_ticks = *start_ticks(pid_);
  }
  ~Child() { kill_and_reap(); }

  const ProcessIdentity& identity() const { return identity_; }
  void exit_with(char code) { EXPECT_EQ(write(hold_.get(), &code, 1), 1); }
  void kill() { ::kill(pid_, SIGKILL); }
  void kill_and_reap() {
    if (pid_ == 0) return;
    kill();
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  UniqueFd hold_;
  pid_t pid_ = 0;
  ProcessIdentity identity_{};
};

/// Counts calls; wait_for(n) returns true when there were n.
class Counter {
 public:
  void operator()() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  bool reaches(int n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return count_ >= n; });
  }
  int count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

std::size_t entries(const char* folder) {
  DIR* const open = opendir(folder);
  std::size_t count = 0;
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}
std::size_t descriptors() { return entries("/proc/self/fd"); }
std::size_t threads() { return entries("/proc/self/task"); }

TEST(Watcher, NoticesAKilledProcess) {
  Child child, survivor;
  Counter deaths, false_alarms;
  const auto watch = Watcher::watch(child.identity(), [&] { deaths(); });
  const auto other = Watcher::watch(survivor.identity(), [&] { false_alarms(); });
  EXPECT_EQ(deaths.count(), 0);
  const auto begin = std::chrono::steady_clock::now();
  child.kill();
  EXPECT_TRUE(deaths.reaches(1));
  RecordProperty("milliseconds",
                 static_cast<int>((std::chrono::steady_clock::now() - begin) / 1ms));
  EXPECT_EQ(false_alarms.count(), 0);
  EXPECT_EQ(deaths.count(), 1);
}

TEST(Watcher, NoticesAProcessThatExits) {
  Child child;
  Counter deaths;
  const auto watch = Watcher::watch(child.identity(), [&] { deaths(); });
  child.exit_with(3);
  EXPECT_TRUE(deaths.reaches(1));
}

TEST(Watcher, TellsAllSubscribersOnce) {
  std::vector<Child> children(5);
  Counter deaths;
  std::vector<Watcher::Subscription> watches;
  for (int i = 0; i < 20; ++i)
    for (Child& child : children)
      watches.push_back(Watcher::watch(child.identity(), [&] { deaths(); }));
  for (Child& child : children) child.kill_and_reap();
  EXPECT_TRUE(deaths.reaches(100));
  watches.clear();
  EXPECT_EQ(deaths.count(), 100);
}

TEST(Watcher, ManyRanksOfOneProcessCostOneDescriptor) {
  Child child;
  const auto first = Watcher::watch(child.identity(), [] {});
  const std::size_t before = descriptors();
  std::vector<Watcher::Subscription> watches;
  for (int i = 0; i < 100; ++i) watches.push_back(Watcher::watch(child.identity(), [] {}));
  EXPECT_EQ(descriptors(), before);
}

TEST(Watcher, ReportsAProcessThatIsGoneAlready) {
  Child child;
  child.kill_and_reap();
  Counter deaths;
  const auto watch = Watcher::watch(child.identity(), [&] { deaths(); });
  EXPECT_TRUE(deaths.reaches(1));
  const auto again = Watcher::watch(child.identity(), [&] { deaths(); });
  EXPECT_TRUE(deaths.reaches(2));
}

TEST(Watcher, ReportsAZombie) {
  Child child;
  Counter deaths;
  const auto first = Watcher::watch(child.identity(), [&] { deaths(); });
  child.kill();
  EXPECT_TRUE(deaths.reaches(1));
  const auto second = Watcher::watch(child.identity(), [&] { deaths(); });  // dead, not reaped
  EXPECT_TRUE(deaths.reaches(2));
}

TEST(Watcher, ReportsANumberThatBelongsToAnotherProcessNow) {
  Child child;
  ProcessIdentity earlier = child.identity();
  earlier.start_ticks -= 1;
  Counter deaths, false_alarms;
  const auto living = Watcher::watch(child.identity(), [&] { false_alarms(); });
  const auto watch = Watcher::watch(earlier, [&] { deaths(); });
  EXPECT_TRUE(deaths.reaches(1));
  EXPECT_EQ(false_alarms.count(), 0);
}

TEST(Watcher, RefusesProcessesThatItCannotSee) {
  ProcessIdentity other = this_process();
  other.pid_namespace += 1;
  try {
    const auto watch = Watcher::watch(other, [] {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
  }
}

TEST(Watcher, IsSilentAfterUnsubscription) {
  Counter calls;
  Child other;
  const auto keeps_the_thread = Watcher::watch(other.identity(), [] {});
  for (int i = 0; i < 50; ++i) {
    Child child;
    std::atomic<bool> subscribed = true;
    std::atomic<int> after = 0;
    {
      const auto watch = Watcher::watch(child.identity(), [&] {
        if (!subscribed) ++after;
        calls();
      });
      child.kill();
    }  // races with the death: the callback runs before this point or never
    subscribed = false;
    child.kill_and_reap();
    EXPECT_EQ(after, 0);
  }
}

TEST(Watcher, UnsubscriptionWaitsForARunningCallback) {
  Child child, other;
  const auto keeps_the_thread = Watcher::watch(other.identity(), [] {});
  Counter begun, go_on;
  std::atomic<bool> ended = false;
  std::optional<Watcher::Subscription> watch = Watcher::watch(child.identity(), [&] {
    begun();
    EXPECT_TRUE(go_on.reaches(1));
    ended = true;
  });
  child.kill();
  ASSERT_TRUE(begun.reaches(1));
  std::thread releaser([&] { go_on(); });
  watch.reset();
  EXPECT_TRUE(ended);
  releaser.join();
}

TEST(Watcher, SubscriptionsMayEndWithinCallbacks) {
  std::thread([] {}).join();  // with the first thread ThreadSanitizer starts one of its own
  const std::size_t threads_before = threads();
  {
    Child child;
    Counter done;
    auto mine = std::make_shared<std::optional<Watcher::Subscription>>();
    std::mutex setting;
    {
      const std::lock_guard lock(setting);
      *mine = Watcher::watch(child.identity(), [&, mine] {
        const std::lock_guard wait_until_set(setting);
        mine->reset();
        done();
      });
    }
    child.kill();
    EXPECT_TRUE(done.reaches(1));
  }
  // The thread ends by itself, soon.
  for (int i = 0; i < 3000 && threads() > threads_before; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(threads(), threads_before);
}

TEST(Watcher, CallbacksMaySubscribe) {
  Child first, second;
  Counter deaths;
  std::optional<Watcher::Subscription> inner;
  Counter subscribed;
  const auto outer = Watcher::watch(first.identity(), [&] {
    inner = Watcher::watch(second.identity(), [&] { deaths(); });
    subscribed();
  });
  first.kill();
  ASSERT_TRUE(subscribed.reaches(1));
  second.kill();
  EXPECT_TRUE(deaths.reaches(1));
  inner.reset();
}

TEST(Watcher, LeavesNothingBehind) {
  Child child;
  {
    const auto warm_up = Watcher::watch(child.identity(), [] {});
  }
  const std::size_t descriptors_before = descriptors(), threads_before = threads();
  for (int i = 0; i < 1000; ++i) {
    const auto watch = Watcher::watch(child.identity(), [] {});
    if (i % 100 == 0) {
      EXPECT_EQ(threads(), threads_before + 1);
    }
  }
  EXPECT_EQ(descriptors(), descriptors_before);
  EXPECT_EQ(threads(), threads_before);
}

TEST(Watcher, ServesManyThreads) {
  std::vector<Child> children(4);
  Counter deaths;
  std::vector<std::thread> subscribers;
  for (int t = 0; t < 4; ++t)
    subscribers.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto& child = children[static_cast<std::size_t>((t + i) % 4)];
        const auto watch = Watcher::watch(child.identity(), [&] { deaths(); });
      }
    });
  for (std::thread& thread : subscribers) thread.join();
  EXPECT_EQ(deaths.count(), 0);
}

TEST(Watcher, SaysWhenTheLimitOfOpenFilesIsReached) {
  Child child;
  const pid_t tester = fork();
  if (tester == 0) {
    const rlimit limit{descriptors(), descriptors()};
    setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<UniqueFd> filler;
    do filler.emplace_back(dup(0));
    while (filler.back());
    try {
      const auto watch = Watcher::watch(child.identity(), [] {});
      _exit(1);
    } catch (const Error& error) {
      _exit(std::string(error.what()).find("limit of open files") != std::string::npos ? 0 : 2);
    }
  }
  int status = -1;
  waitpid(tester, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Watcher, AForkedChildLeavesItsParentsSubscriptionsAlone) {
  Child child;
  Counter deaths;
  auto watch =
      std::make_unique<Watcher::Subscription>(Watcher::watch(child.identity(), [&] { deaths(); }));
  const pid_t copy = fork();
  if (copy == 0) {
    watch.reset();
    _exit(0);
  }
  int status = -1;
  waitpid(copy, &status, 0);
  EXPECT_EQ(status, 0);
  child.kill();
  EXPECT_TRUE(deaths.reaches(1));
}

}  // namespace
}  // namespace treering
