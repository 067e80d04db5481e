#include "tests/ranks/resources.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/exec/host/arena.hpp"
#include "transport/rendezvous/invitation.hpp"

namespace treering::test {
namespace {

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t arena_bytes() {
  constexpr std::size_t block = 512;  // of st_blocks
  struct stat status {};
  fstat(process_arena().descriptor(), &status);
  return static_cast<std::size_t>(status.st_blocks) * block;
}

}  // namespace

Resources Resources::now() {
  return {entries("/proc/self/fd"), entries("/proc/self/task"), arena_bytes(), resident_bytes()};
}

/// The destruction of any communicator frees what those before it left.
Resources Resources::swept() {
  Communicator::create_local(1);
  return now();
}

Resources Resources::swept(const Resources& before) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (;;) {
    const Resources found = swept();
    const bool flat = found.descriptors <= before.descriptors && found.threads <= before.threads &&
                      found.arena <= before.arena;
    if (flat || std::chrono::steady_clock::now() > deadline) return found;
  }
}

std::string Resources::line() const {
  return fmt::format("{} {} {} {}", descriptors, threads, arena, resident);
}

Resources Resources::parse(const std::string& line) {
  Resources r{};
  std::istringstream(line) >> r.descriptors >> r.threads >> r.arena >> r.resident;
  return r;
}

void PrintTo(const Resources& r, std::ostream* out) {
  *out << fmt::format("{} descriptors, {} threads, {} KiB of the arena, {} KiB resident",
                      r.descriptors, r.threads, r.arena / 1024, r.resident / 1024);
}

std::vector<std::string> leftovers(const UniqueId& job) {
  const std::string socket = Invitation::from_bytes(job.bytes()).socket_name();
  std::vector<std::string> found;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find(socket) != std::string::npos) found.push_back(line);
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (entry.path().filename().string().find("treering") != std::string::npos)
      found.push_back(entry.path());
  return found;
}

std::vector<int> children() {
  std::vector<int> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(thread.path() / "children");
    for (int pid; list >> pid;) all.push_back(pid);
  }
  return all;
}

}  // namespace treering::test
