#include "perf/bench/failures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace treering::perf {

void Failures::add(int rank, const std::string& text, bool consequence) {
  failures_.push_back({rank, text, consequence});
}

std::vector<Failures::Failure> Failures::told() const {
  std::vector<Failure> causes;
  for (const Failure& failure : failures_)
    if (!failure.consequence) causes.push_back(failure);
  return causes.empty() ? failures_ : causes;
}

std::vector<int> Failures::ranks() const {
  std::vector<int> ranks;
  for (const Failure& failure : told()) ranks.push_back(failure.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string Failures::text() const {
  std::map<std::string, std::vector<int>> ranks_of;
  for (const Failure& failure : told()) ranks_of[failure.text].push_back(failure.rank);
  std::string lines;
  for (auto& [text, ranks] : ranks_of) {
    std::sort(ranks.begin(), ranks.end());
    lines += fmt::format("{}Rank{} {}: {}", lines.empty() ? "" : "\n", ranks.size() > 1 ? "s" : "",
                         fmt::join(ranks, ", "), text);
  }
  return lines;
}

}  // namespace treering::perf
