#include "base/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace treering {
namespace {

thread_local int thread_rank = -1;

/// The %* of the pattern: "rank 3 " or nothing. Lines are formatted by the thread that writes them.
class RankFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    if (thread_rank >= 0) fmt::format_to(std::back_inserter(out), "rank {} ", thread_rank);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<RankFlag>();
  }
};

/// Never destroyed: threads may log while the process exits.
spdlog::logger& logger() {
  static spdlog::logger* const instance = [] {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<RankFlag>('*').set_pattern("treering[%P] %*%l: %v");
    auto made = std::make_unique<spdlog::logger>("treering",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(std::move(formatter));
    made->set_level(spdlog::level::warn);
    return made.release();
  }();
  return *instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    default:
      return spdlog::level::debug;
  }
}

}  // namespace

void set_log_level(LogLevel level) noexcept { logger().set_level(spdlog_level(level)); }
bool log_enabled(LogLevel level) noexcept { return logger().should_log(spdlog_level(level)); }
void set_log_rank(int rank) noexcept { thread_rank = rank; }
void write_log(LogLevel level, std::string_view line) noexcept {
  logger().log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace treering
