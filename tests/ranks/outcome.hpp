#pragma once

// How a rank's call ended, in a form that a process can print and a test can read.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "treering/error.hpp"

namespace treering::test {

struct Outcome {
  std::optional<ErrorCode> code;  ///< none: no error
  std::vector<int> ranks;         ///< that the error names
  std::string text;               ///< what() of the error
  std::chrono::milliseconds took{0};

  bool ok() const { return !code; }
  /// One line, and back.
  std::string line() const;
  static Outcome parse(std::string_view line);
};

Outcome outcome(const Error&);
/// For messages of the tests.
void PrintTo(const Outcome&, std::ostream*);

/// Calls `body` and says how that ended. Other exceptions than treering::Error go through.
template <class Body>
Outcome outcome_of(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome result;
  try {
    body();
  } catch (const Error& error) {
    result = outcome(error);
  }
  result.took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  return result;
}

}  // namespace treering::test
