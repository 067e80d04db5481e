#pragma once

// What went wrong on which rank, put together for one reader.

#include <string>
#include <vector>

namespace treering::perf {

class Failures {
 public:
  /// A consequence is a failure that another rank's has caused; it is told only if no cause is
  /// known.
  void add(int rank, const std::string& text, bool consequence);

  bool empty() const noexcept { return failures_.empty(); }
  /// The ranks that failed by themselves; all, if no cause is known.
  std::vector<int> ranks() const;
  /// A line for each different text: "Rank 1: its process was killed by …", "Ranks 0, 2: …".
  std::string text() const;

 private:
  struct Failure {
    int rank;
    std::string text;
    bool consequence;
  };
  std::vector<Failure> told() const;

  std::vector<Failure> failures_;
};

}  // namespace treering::perf
