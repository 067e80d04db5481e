#include "transport/mapped/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <string>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"

namespace treering {
namespace {

/// A small file of /proc; none if there is no such file, or the process that it was about has ended meanwhile.
std::optional<std::string> contents_of(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[4096];
  const ssize_t length = file ? read(file.get(), text, sizeof text) : -1;
  if (length < 0 && errno != ENOENT && errno != ESRCH)
    throw system_error(fmt::format("read {}", path));
  if (length < 0) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(length));
}

std::optional<std::uint64_t> ticks_in(const std::string& path) {
  const std::string text = contents_of(path).value_or("");
  // The second field is the program's name in parentheses, which may contain anything.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace

ProcessIdentity this_process() {
  ProcessIdentity identity{};
  std::string boot_id = contents_of("/proc/sys/kernel/random/boot_id").value_or("");
  if (boot_id.empty())
    throw Error(ErrorCode::system,
                "cannot read /proc/sys/kernel/random/boot_id; is /proc mounted?");
  boot_id.erase(boot_id.find_last_not_of('\n') + 1);
  std::copy_n(boot_id.begin(), std::min(boot_id.size(), identity.boot_id.size() - 1),
              identity.boot_id.begin());
  struct stat space {};
  if (stat("/proc/self/ns/pid", &space) != 0) throw system_error("look at /proc/self/ns/pid");
  identity.pid_namespace = space.st_ino;
  identity.pid = getpid();
  const auto ticks = ticks_in("/proc/self/stat");
  // Else others could not recognise this process by its number.
  if (!ticks || ticks != start_ticks(identity.pid))
    throw Error(ErrorCode::system,
                "/proc is missing, or shows another process-id namespace than this process's; "
                "mount it afresh (mount -t proc proc /proc)");
  identity.start_ticks = *ticks;
  return identity;
}

std::optional<std::uint64_t> start_ticks(std::int64_t pid) {
  return ticks_in(fmt::format("/proc/{}/stat", pid));
}

bool same_process(const ProcessIdentity& a, const ProcessIdentity& b) noexcept { return a == b; }

bool same_host(const ProcessIdentity& a, const ProcessIdentity& b) noexcept {
  return a.boot_id == b.boot_id;
}

}  // namespace treering
