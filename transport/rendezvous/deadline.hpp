#pragma once

// A point in time until which one waits, and a look around meanwhile.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

namespace treering {

/// Throws if there is a reason to wait no longer. Empty: there never is.
using Look = std::function<void()>;

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds wait, Look look = {})
      : end_(Clock::now() + std::min(wait, longest)), look_(std::move(look)) {}

  /// What is left, or until it is time for a look, as poll() wants it: never negative, rounded up.
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    const auto most = look_ ? between_looks : longest;
    return static_cast<int>(std::clamp(left, std::chrono::milliseconds{0}, most).count());
  }
  bool looks() const noexcept { return static_cast<bool>(look_); }
  /// Looks around.
  bool over() const {
    if (look_) look_();
    return Clock::now() >= end_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds longest = std::chrono::hours{24 * 20};  // fits an int
  static constexpr std::chrono::milliseconds between_looks{20};
  Clock::time_point end_;
  Look look_;
};

/// "120 s", "1500 ms"
inline std::string in_words(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000)
                                  : fmt::format("{} ms", time.count());
}

}  // namespace treering
