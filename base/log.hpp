#pragma once

// The log: lines on stderr, "treering[4711] rank 3 warning: …". Which lines, TREERING_LOG says;
// settings() applies it. Callable from any thread; never throws.

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace treering {

enum class LogLevel : std::uint8_t { error, warn, info, debug };

/// Lines above this level are dropped. LogLevel::warn until somebody says otherwise.
void set_log_level(LogLevel) noexcept;
bool log_enabled(LogLevel) noexcept;

/// Lines of this thread carry this rank; -1, as at first: none.
void set_log_rank(int rank) noexcept;

void write_log(LogLevel, std::string_view line) noexcept;

/// log(LogLevel::warn, "rank {} is late", 3)
template <class... Values>
void log(LogLevel level, fmt::format_string<Values...> text, Values&&... values) {
  if (log_enabled(level)) write_log(level, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace treering
