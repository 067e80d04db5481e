// Who is who among processes, and the mapping of another one's arena.

#include "transport/mapped/peers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kernels/exec/host/arena.hpp"
#include "transport/mapped/process.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::size_t MiB = 1 << 20;

/// Stands for a process that is not this one.
ProcessIdentity stranger(int number) {
  ProcessIdentity process = this_process();
  process.pid += 1'000'000 + number;
  return process;
}

int mapped_arenas() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:treering") != std::string::npos;
  return count;
}

UniqueFd copy_of(int descriptor) { return UniqueFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)); }

TEST(Process, IsItself) {
  const ProcessIdentity a = this_process(), b = this_process();
  EXPECT_TRUE(same_process(a, b));
  EXPECT_TRUE(same_host(a, b));
  EXPECT_EQ(a.pid, getpid());
  EXPECT_EQ(std::strlen(a.boot_id.data()), 36u);
}

TEST(Process, EveryMemberCounts) {
  const ProcessIdentity self = this_process();
  ProcessIdentity other = self;
  other.pid += 1;
  EXPECT_FALSE(same_process(self, other));
  other = self;
  other.start_ticks += 1;
  EXPECT_FALSE(same_process(self, other));
  other = self;
  other.pid_namespace += 1;
  EXPECT_FALSE(same_process(self, other));
  EXPECT_TRUE(same_host(self, other));
  other = self;
  other.boot_id[0] = other.boot_id[0] == 'a' ? 'b' : 'a';
  EXPECT_FALSE(same_process(self, other));
  EXPECT_FALSE(same_host(self, other));
}

TEST(Process, AForkedChildIsAnother) {
  const ProcessIdentity parent = this_process();
  const pid_t child = fork();
  if (child == 0) {
    const ProcessIdentity self = this_process();
    _exit(same_host(parent, self) && !same_process(parent, self) && self.pid == getpid() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(Peers, SeeTheSameMemory) {
  Arena theirs(64 * MiB);
  auto* const block = static_cast<int*>(theirs.allocate(4096));
  const auto memory = attach(stranger(1), copy_of(theirs.descriptor()), theirs.size());
  ASSERT_NE(memory->base(), theirs.base());
  const auto offset = reinterpret_cast<std::byte*>(block) - theirs.base();
  auto* const seen = reinterpret_cast<int*>(memory->base() + offset);
  for (int i = 0; i < 1024; ++i) block[i] = 3 * i + 1;
  for (int i = 0; i < 1024; ++i) ASSERT_EQ(seen[i], 3 * i + 1);
  seen[5] = -7;
  EXPECT_EQ(block[5], -7);
}

TEST(Peers, AreMappedOnceWhileNeeded) {
  Arena theirs(64 * MiB);
  const int before = mapped_arenas();
  std::vector<std::shared_ptr<PeerMemory>> seen(16);
  std::vector<std::thread> threads;
  for (auto& memory : seen)
    threads.emplace_back(
        [&] { memory = attach(stranger(2), copy_of(theirs.descriptor()), theirs.size()); });
  for (std::thread& thread : threads) thread.join();
  for (auto& memory : seen) EXPECT_EQ(memory, seen[0]);
  EXPECT_EQ(mapped_arenas(), before + 1);
  seen.clear();
  EXPECT_EQ(mapped_arenas(), before);
  EXPECT_NE(attach(stranger(2), copy_of(theirs.descriptor()), theirs.size()), nullptr);
}

TEST(Peers, DifferByProcess) {
  Arena a(64 * MiB), b(32 * MiB);
  const auto first = attach(stranger(3), copy_of(a.descriptor()), a.size());
  const auto second = attach(stranger(4), copy_of(b.descriptor()), b.size());
  EXPECT_NE(first->base(), second->base());
  EXPECT_EQ(second->size(), 32 * MiB);
}

TEST(Peers, TheOwnArenaIsNotMappedAgain) {
  Arena& mine = process_arena();
  const int before = mapped_arenas();
  const auto memory = attach(this_process(), UniqueFd(), mine.size());
  EXPECT_EQ(memory->base(), mine.base());
  EXPECT_EQ(mapped_arenas(), before);
  auto* const block = static_cast<std::byte*>(mine.allocate(MiB, Backing::later));
  memory->back(static_cast<std::size_t>(block - mine.base()), 10);
  block[9] = std::byte{1};
  mine.deallocate(block);
}

TEST(Peers, BackPartsOfEachOthersMemory) {
  Arena theirs(64 * MiB);
  auto* const block = static_cast<std::byte*>(theirs.allocate(8 * MiB, Backing::later));
  const auto offset = static_cast<std::size_t>(block - theirs.base());
  const auto memory = attach(stranger(5), copy_of(theirs.descriptor()), theirs.size());
  memory->back(offset + MiB, 64 * 1024);
  struct stat status {};
  fstat(theirs.descriptor(), &status);
  EXPECT_GE(status.st_blocks * 512, 64 * 1024);
  EXPECT_LE(status.st_blocks * 512, 64 * 1024 + 4 * 4096);
  memory->base()[offset + MiB] = std::byte{9};
  EXPECT_EQ(block[MiB], std::byte{9});
  EXPECT_THROW(memory->back(64 * MiB - 1, 2), Error);
}

TEST(Peers, RefuseWhatIsNoArena) {
  Arena theirs(64 * MiB);
  EXPECT_THROW(attach(stranger(6), copy_of(theirs.descriptor()), 32 * MiB), Error);
  EXPECT_THROW(attach(stranger(6), UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)), 64 * MiB),
               Error);
  EXPECT_THROW(attach(stranger(6), UniqueFd(), 64 * MiB), Error);
  UniqueFd plain(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(plain.get(), 64 * MiB), 0);
  EXPECT_THROW(attach(stranger(6), copy_of(plain.get()), 64 * MiB), Error);
  ASSERT_EQ(fcntl(plain.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_THROW(attach(stranger(6), copy_of(plain.get()), 64 * MiB), Error);
  EXPECT_NO_THROW(attach(stranger(6), copy_of(theirs.descriptor()), 64 * MiB));
}

TEST(Peers, StayReadableAfterDeath) {
  auto theirs = std::make_unique<Arena>(64 * MiB);
  auto* const block = static_cast<std::byte*>(theirs->allocate(100));
  block[99] = std::byte{42};
  const auto offset = block + 99 - theirs->base();
  const auto memory = attach(stranger(7), copy_of(theirs->descriptor()), theirs->size());
  theirs.reset();
  EXPECT_EQ(memory->base()[offset], std::byte{42});
}

}  // namespace
}  // namespace treering
