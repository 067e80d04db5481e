#pragma once

// What a comparison prints: a row for each size and distance.

#include <optional>
#include <string>
#include <vector>

#include "perf/bench/report.hpp"

namespace treering::perf {

/// Prints rows as they come. Comments start with `#`.
class VersusTable {
 public:
  VersusTable(const Options&, std::vector<std::string> peers);
  void begin(const PeersReport&) const;
  void row(const Row&);
  void unmeasured(const Unmeasured&, int rounds);
  void end(const std::vector<Row>&) const;

 private:
  void section(Collective);

  const Options& options_;
  std::vector<std::string> peers_;
  std::optional<Collective> section_;
};

/// One line; a column for each of `peers`, `-` where it has no time.
std::string format_versus_row(const Row&, int ranks, const std::vector<std::string>& peers);

/// Why there is nobody to compare with: a line for each.
std::string no_peer_text(const PeersReport&);

}  // namespace treering::perf
