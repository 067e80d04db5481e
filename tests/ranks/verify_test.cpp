// Mapped peers are verified at start: devices whose mappings of a peer's memory do not work, in the
// place of GPUs and of a machine that are broken.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"
#include "collectives/access.hpp"
#include "kernels/exec/host/arena.hpp"
#include "tests/ranks/changed_device.hpp"
#include "tests/ranks/processes.hpp"
#include "tests/ranks/resources.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// ── a GPU ───────────────────────────────────────────────────────────────────────────────────

class ArenaMapping final : public Mapping {
 public:
  /// `file` -1: memory that has nothing to do with the peer's.
  ArenaMapping(int file, std::size_t size) : size_(size) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    base_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file, 0);
    if (base_ == MAP_FAILED) throw system_error("map memory");
  }
  ~ArenaMapping() override { munmap(base_, size_); }
  std::byte* base() const override { return static_cast<std::byte*>(base_); }

 private:
  std::size_t size_;
  void* base_;
};

enum class Fault : char { none = '-', elsewhere = 'e', refused = 'r' };

/// Takes the arena for its own memory, which peers map once more, by handles. `faults`: what goes
/// wrong with each mapping of a peer's memory, in the order of ranks.
class PretendedGpu final : public ChangedDevice {
 public:
  explicit PretendedGpu(std::string faults) : faults_(std::move(faults)) {}

  Execution execution() const override { return Execution::cuda; }
  std::string identity() const override { return "pretended"; }
  void* reserve(std::size_t bytes) override { return allocate(bytes); }
  void back(void*, std::size_t) override {}

  void* device_view(void* host, std::size_t bytes) override {
    ++views_[{host, bytes}];
    return host;
  }
  void release_view(void* host, std::size_t bytes) noexcept override {
    if (--views_[{host, bytes}] == 0) views_.erase({host, bytes});
  }
  std::size_t views() const { return views_.size(); }

  bool export_memory(const void* pointer, MemoryHandle& handle, std::size_t& offset) override {
    if (!ChangedDevice::export_memory(pointer, handle, offset)) return false;
    const int process = getpid();
    std::memcpy(handle.bytes.data(), &process, sizeof process);
    return true;
  }
  std::unique_ptr<Mapping> import_memory(const MemoryHandle& handle) override {
    const auto fault = static_cast<Fault>(faults_.at(imports_++));
    if (fault == Fault::refused) throw Error(ErrorCode::unsupported, "no mapping today");
    if (fault == Fault::elsewhere) return std::make_unique<ArenaMapping>(-1, handle.size);
    int process = 0;
    std::memcpy(&process, handle.bytes.data(), sizeof process);
    const std::string path = fmt::format("/proc/{}/fd/{}", process, handle.descriptor);
    const UniqueFd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file) throw system_error("open " + path);
    return std::make_unique<ArenaMapping>(file.get(), handle.size);
  }

 private:
  std::string faults_;
  std::size_t imports_ = 0;
  std::map<std::pair<void*, std::size_t>, int> views_;
};

/// Every collective and algorithm, in sizes from nothing to many messages.
std::string faults_of_calls(Communicator& comm) {
  std::uint64_t seed = 1;
  for (const std::size_t count : {0, 3, 1000, sanitized() ? 20'000 : 200'000})
    for (const bool registered : {false, true})
      for (const auto& [collective, algorithm] :
           {std::pair{Collective::all_reduce, Algorithm::ring},
            std::pair{Collective::all_reduce, Algorithm::one_shot},
            std::pair{Collective::all_reduce, Algorithm::two_shot},
            std::pair{Collective::all_gather, Algorithm::ring},
            std::pair{Collective::all_to_all, Algorithm::direct}}) {
        const Case one{
            .pattern = {collective, DataType::f32, ReduceOp::sum, comm.size(), count, seed++},
            .algorithm = algorithm,
            .registered = registered};
        if (const std::string fault = checked_call(comm, one); !fault.empty()) return fault;
        if (comm.last_call().direct) return one.text() + " was direct";
      }
  return {};
}

/// Argument: each rank's faults, separated by spaces.
const RegisterProgram on_gpus("on_pretended_gpus", [](const RankProcess& self) {
  std::istringstream words(self.argument);
  std::string faults;
  for (int r = 0; r <= self.rank; ++r) words >> faults;
  PretendedGpu& gpu = *new PretendedGpu(faults);  // outlives seats whose peers have not left
  testing::internal::CaptureStderr();
  {
    Communicator comm = join_on(gpu, self.id, self.size, self.rank);
    std::string log = testing::internal::GetCapturedStderr();
    std::ranges::replace(log, '\n', ' ');
    self.say(log);
    self.say(faults_of_calls(comm));
  }
  self.say("left");
  self.hear();  // all have
  static_cast<void>(Resources::swept());
  self.say(fmt::format("{}", gpu.views()));
});

/// Plays the job. Returns each rank's log.
std::vector<std::string> logs_of_right_job(int size, const std::string& faults) {
  Job job("on_pretended_gpus", size, {.argument = faults});
  std::vector<std::string> logs;
  for (int r = 0; r < size; ++r) {
    logs.push_back(job.hear(r));
    EXPECT_EQ(job.hear(r), "") << "rank " << r;
  }
  job.expect_all("left");
  job.tell_all("all have left");
  job.expect_all("0");
  return logs;
}

constexpr const char* named = "ranks {} and {} do not reach each other's device memory";

TEST(Verify, GpusThatReachOneAnotherAreNotStaged) {
  for (const std::string& log : logs_of_right_job(3, "-- -- --")) EXPECT_EQ(log, "");
}

TEST(Verify, APairThatFailsIsNamedAndStaged) {
  const std::string pair = fmt::format(fmt::runtime(named), 0, 2);
  for (const char* faults : {"-e -- --", "-- -- e-", "-r -- --", "-e -- r-"}) {
    const auto logs = logs_of_right_job(3, faults);
    EXPECT_THAT(logs[0], HasSubstr(pair)) << faults;
    EXPECT_THAT(logs[1], testing::IsEmpty()) << faults;
    EXPECT_THAT(logs[2], Not(HasSubstr(pair))) << faults;  // one of them speaks
  }
}

TEST(Verify, AllPairsMayFail) {
  const auto logs = logs_of_right_job(4, "eee eee eee eee");
  for (int other = 1; other < 4; ++other)
    EXPECT_THAT(logs[0], HasSubstr(fmt::format(fmt::runtime(named), 0, other)));
}

// ── the host ────────────────────────────────────────────────────────────────────────────────

/// What it writes to other processes does not arrive; or what it reads of theirs does not.
class LosingHost final : public ChangedDevice {
 public:
  explicit LosingHost(bool writes) : writes_(writes) {}

  void copy_now(void* to, const void* from, std::size_t bytes) override {
    if (!is_a_peers(writes_ ? to : from, bytes)) ChangedDevice::copy_now(to, from, bytes);
  }

 private:
  static bool is_a_peers(const void* memory, std::size_t bytes) {
    const std::byte here{};
    const auto distance =
        reinterpret_cast<std::intptr_t>(memory) - reinterpret_cast<std::intptr_t>(&here);
    constexpr std::intptr_t stack = 1 << 20;
    return !process_arena().contains(memory, bytes) && std::abs(distance) > stack;
  }
  bool writes_;
};

const RegisterProgram losing("losing_host", [](const RankProcess& self) {
  LosingHost broken(self.argument == "writes");
  Device& machine = self.rank == 1 ? broken : device();
  self.say(outcome_of([&] { join_on(machine, self.id, self.size, self.rank); }).line());
});

TEST(Verify, AHostsPairThatFailsIsAnError) {
  for (const char* lost : {"writes", "reads"}) {
    Job job("losing_host", 3, {.argument = lost});
    for (const Outcome& o : job.hear_outcomes()) {
      EXPECT_EQ(o.code, ErrorCode::system) << lost << testing::PrintToString(o);
      EXPECT_THAT(o.ranks, ElementsAre(0, 1, 2));
      EXPECT_THAT(o.text, HasSubstr("ranks 0 and 1, 1 and 2 have mapped each other's memory, but"));
    }
  }
}

/// The lines of flags that marks were left in are as if nothing had been there.
const RegisterProgram clean("clean_flags", [](const RankProcess& self) {
  Communicator comm = self.join();
  std::size_t dirty = 0;
  for (int p = 0; p < self.size; ++p) {
    const Edge& edge = membership(comm).edge(0, p);
    for (const void* line :
         {static_cast<const void*>(edge.from.posts), static_cast<const void*>(edge.to.credit)}) {
      constexpr std::byte zeros[line_bytes]{};
      if (std::memcmp(line, zeros, line_bytes) != 0) ++dirty;
    }
  }
  self.say(fmt::format("{}", dirty));
  self.hear();
});

TEST(Verify, LeavesNoMarks) {
  Job job("clean_flags", 4);
  job.expect_all("0");
}

}  // namespace
}  // namespace treering::test
