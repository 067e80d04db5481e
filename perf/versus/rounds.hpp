#pragma once

// The contenders of a run, and the rounds of one case.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perf/bench/report.hpp"
#include "perf/versus/contender.hpp"
#include "perf/versus/statistics.hpp"

namespace treering::perf {

/// Treering and its peers. A peer that fails drops out, and is named.
class Field {
 public:
  /// Starts all of them. Throws Error if Treering does not start.
  Field(const Options&, const std::vector<std::string>& command_line);

  int ranks() const noexcept { return ranks_; }
  const std::vector<std::string>& peers() const noexcept { return names_; }
  std::size_t peers_left() const;

  /// Orders to all ranks of Treering; throws Error.
  std::vector<Answer> ask_ours(const Order& order) { return ours_.ask(order); }
  /// Orders to a peer; nothing if it cannot do the case, or has dropped out, now or before.
  std::optional<std::vector<Answer>> ask(std::size_t peer, const Order&);
  void drop(std::size_t peer, const std::string& why);

  /// The processes of our ranks, and who took part, who did not.
  std::vector<RankPlace> places() const;
  const PeersReport& report() const noexcept { return report_; }

 private:
  int ranks_;
  Contender ours_;
  std::vector<std::string> names_;                 // of the peers that were found
  std::vector<std::unique_ptr<Contender>> peers_;  // null: dropped out
  PeersReport report_;
};

/// What came out of one case.
struct CaseResult {
  std::vector<Round> rounds;
  Answer ours;              ///< rank 0's last: how the call was done
  std::uint64_t wrong = 0;  ///< elements of ours
  bool direct = true;       ///< on all ranks
};

/// Checks the case once on everybody, then times it, round by round. A peer whose result is wrong
/// drops out.
CaseResult run_case(Field&, const Options&, const Case&, int number);

/// Bytes that all ranks together copy in a second.
double measure_copy_rate(Field&);

}  // namespace treering::perf
