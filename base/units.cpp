#include "base/units.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::string_view prefixes = "KMGTPE";

[[noreturn]] void refuse(std::string_view text, const char* why) {
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("'{}' is not a size: {}. Write bytes, or a number with K, M, G, T, P or E "
                  "(powers of 1024), such as 64K or 1.5M.",
                  text, why));
}

/// The power of 1024 that `unit` stands for: "", "B", "K", "KB", "KiB" …; -1 if none.
int power_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  const int upper = std::toupper(static_cast<unsigned char>(unit.front()));
  const std::size_t at = prefixes.find(static_cast<char>(upper));
  const std::string_view rest = unit.substr(1);
  const bool known = at != std::string_view::npos && (rest.empty() || rest == "B" || rest == "iB");
  return known ? static_cast<int>(at) + 1 : -1;
}

}  // namespace

std::size_t parse_size(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::size_t whole = 0;
  auto [rest, error] = std::from_chars(text.data(), end, whole);
  if (error == std::errc::result_out_of_range) refuse(text, "it is too large");
  if (error != std::errc()) refuse(text, "it does not start with a digit");

  double fraction = 0;
  if (rest != end && *rest == '.') {
    const auto [after, bad] = std::from_chars(rest, end, fraction, std::chars_format::fixed);
    if (bad != std::errc()) refuse(text, "digits must follow the point");
    rest = after;
  }
  if (rest != end && *rest == ' ') ++rest;
  const int power = power_of(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  if (power < 0) refuse(text, "its unit is unknown");

  const std::size_t unit = std::size_t{1} << (10 * power);
  const auto more = static_cast<std::size_t>(fraction * static_cast<double>(unit));
  if (whole > (std::numeric_limits<std::size_t>::max() - more) / unit)
    refuse(text, "it is too large");
  return whole * unit + more;
}

std::string format_size(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  std::size_t power = 0;
  // 1023.996 KiB would be printed as "1024 KiB": it is 1 MiB.
  while (power < prefixes.size() && std::round(value * 100) >= 1024 * 100) {
    value /= 1024;
    ++power;
  }
  return fmt::format("{:g} {}iB", std::round(value * 100) / 100, prefixes[power - 1]);
}

std::string format_time(double seconds) {
  constexpr struct {
    double seconds;
    const char* name;
  } units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
  const auto* unit = units;
  while (unit != std::end(units) - 1 && seconds >= 999.5 * unit->seconds) ++unit;
  const double value = seconds / unit->seconds;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, unit == units ? 0 : decimals, unit->name);
}

}  // namespace treering
