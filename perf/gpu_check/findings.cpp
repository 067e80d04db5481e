#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "perf/gpu_check/probe.hpp"

namespace treering::gpu_check {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

template <class Value>
std::string value_line(std::string_view name, const Value& value) {
  return line({{"name", name}, {"value", value}});
}

}  // namespace

void Findings::number(std::string_view name, double value) const { write(value_line(name, value)); }
void Findings::text(std::string_view name, std::string_view value) const {
  write(value_line(name, value));
}
void Findings::flag(std::string_view name, bool value) const { write(value_line(name, value)); }
void Findings::fail(std::string_view reason) const { write(line({{"failed", reason}})); }
void Findings::skip(std::string_view reason) const { write(line({{"skipped", reason}})); }
void Findings::done() const { write(line({{"done", true}})); }

void Findings::write(const std::string& line) const {
  for (std::size_t done = 0; done < line.size();) {
    const ssize_t some = ::write(descriptor_, line.data() + done, line.size() - done);
    if (some < 0 && errno != EINTR) return;  // nobody listens any more
    if (some > 0) done += static_cast<std::size_t>(some);
  }
}

}  // namespace treering::gpu_check
