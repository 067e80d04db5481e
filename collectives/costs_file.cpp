#include "collectives/costs_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

namespace fs = std::filesystem;

/// More than any such file has.
constexpr std::size_t most_bytes = 64 << 10;

std::string host() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

Costs built_in(Execution execution, int ranks) {
  const int cores = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  return default_costs(execution == Execution::cuda ? Machine::gpu : Machine::cpu, ranks, cores);
}

std::string contents_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most_bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw Error(ErrorCode::system,
              fmt::format("The costs cannot be stored in {}: {}. Set XDG_CACHE_HOME to a folder "
                          "that can be written.",
                          path.string(), why));
}

}  // namespace

fs::path costs_file(int ranks) {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  fs::path folder = variable("XDG_CACHE_HOME");
  if (!folder.is_absolute()) folder = variable("HOME").empty() ? "" : variable("HOME") / ".cache";
  if (folder.empty()) return {};
  return folder / "treering" / fmt::format("{}-{}.costs", host(), ranks);
}

Costs find_costs(Execution execution, int ranks) {
  const fs::path path = costs_file(ranks);
  std::error_code none;
  if (execution != Execution::host || path.empty() || !fs::is_regular_file(path, none))
    return built_in(execution, ranks);
  try {
    return parse_costs(contents_of(path), host(), ranks);
  } catch (const Error& error) {
    log(LogLevel::warn,
        "The costs in {} are not used: {}. Run `treering tune` again, or remove the file.",
        path.string(), error.what());
    return built_in(execution, ranks);
  }
}

void store_costs(const Costs& costs, int ranks) {
  const fs::path path = costs_file(ranks);
  if (path.empty()) refuse("the user's cache folder", "neither XDG_CACHE_HOME nor HOME is set");
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) refuse(path, error.message());
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), getpid());
  std::ofstream file(temporary, std::ios::trunc | std::ios::binary);
  file << to_text(costs, host(), ranks);
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  fs::remove(temporary, error);
  refuse(path, why);
}

}  // namespace treering
