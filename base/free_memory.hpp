#pragma once

// How much memory this process may still take: what the machine has left, or what its control group
// (container) has left, whichever is less.

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace treering {

/// The number that follows the word `key` in a file of the kernel's; with an empty key its first
/// word.
inline std::optional<std::size_t> kernel_number(const std::string& path,
                                                std::string_view key = {}) {
  std::ifstream file(path);
  std::size_t number = 0;
  if (!key.empty())
    for (std::string word; file >> word && word != key;) continue;
  if (file >> number) return number;
  return std::nullopt;
}

/// Bytes left in this process's control groups (version 2), nothing where there is no limit.
inline std::optional<std::size_t> free_in_control_group() {
  std::ifstream groups("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(groups, line);)
    if (line.starts_with("0::")) path = line.substr(3);
  std::optional<std::size_t> least;
  // A group is bound by all that contain it. In a container the topmost visible one is often "/".
  for (; !path.empty(); path.resize(path.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + (path == "/" ? "" : path);
    const auto most = kernel_number(folder + "/memory.max");
    const auto used = kernel_number(folder + "/memory.current");
    if (most && used) {
      const std::size_t cache =
          kernel_number(folder + "/memory.stat", "inactive_file").value_or(0) +
          kernel_number(folder + "/memory.stat", "active_file").value_or(0);
      const std::size_t kept = *used - std::min(*used, cache);
      const std::size_t left = *most - std::min(*most, kept);
      least = std::min(least.value_or(left), left);
    }
  }
  return least;
}

/// Bytes that can be taken before the kernel has to kill somebody.
inline std::size_t free_memory() {
  const auto machine = kernel_number("/proc/meminfo", "MemAvailable:");
  const std::size_t free = machine ? *machine * 1024 : static_cast<std::size_t>(-1);
  return std::min(free, free_in_control_group().value_or(free));
}

}  // namespace treering
