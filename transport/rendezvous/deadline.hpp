#pragma once

// A point in time until which one waits.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

namespace treering {

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds wait)
      : end_(Clock::now() + std::min(wait, longest)) {}

  /// What is left, as poll() wants it: never negative, rounded up.
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds{0}, longest).count());
  }
  bool over() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 20};  // fits an int
  Clock::time_point end_;
};

/// "120 s", "1500 ms"
inline std::string in_words(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

}  // namespace treering
