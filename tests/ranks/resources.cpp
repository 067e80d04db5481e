#include "tests/ranks/resources.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernels/exec/host/arena.hpp"

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

Resources Resources::now_that(const Resources& before) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  Resources found = now();
  while (found.threads > before.threads && std::chrono::steady_clock::now() < deadline)
    found = now();
  return found;
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

std::vector<std::string> leftovers() {
  std::vector<std::string> found;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (line.find("treering") != std::string::npos) found.push_back(line);
  for (const char* folder : {"/dev/shm", "/tmp"})
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().filename().string().starts_with("treering")) found.push_back(entry.path());
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
