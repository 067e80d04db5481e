#pragma once

// What a run leaves behind: a table on the screen, in the form of nccl-tests, and a JSON file.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perf/bench/cases.hpp"
#include "perf/bench/message.hpp"
#include "perf/bench/workers.hpp"
#include "perf/versus/statistics.hpp"

namespace treering::perf {

/// One case and what came out of it.
struct Row {
  Case what;
  Measurement out_of_place, in_place;
  std::optional<Comparison> comparison = {};  ///< with --versus
};

/// A case whose rounds were not in a class, or not often enough.
struct Unmeasured {
  Case what;
  Distance distance;
  int rounds;
};

/// What a comparison leaves besides its rows.
struct PeersReport {
  std::map<std::string, std::string> versions;     ///< of the peers that took part
  std::map<std::string, std::string> unavailable;  ///< those that did not, or not to the end: why
  std::vector<Unmeasured> unmeasured;
};

/// Elements that are wrong and guard bytes that are broken, in all rows.
std::uint64_t wrong_values(const std::vector<Row>&);
std::uint64_t broken_guards(const std::vector<Row>&);
/// The mean over both halves of all rows that move data; 0 if there is none.
double average_bus_bandwidth(const std::vector<Row>&, int ranks);
/// "two_shot", or "two_shot/ring" if the call in place went another way; "direct", "staged" or "ll"
/// likewise.
std::string algorithm_text(const Row&);
std::string wire_text(const Row&);

/// Prints rows as they come. Comments start with `#`. A terminal also sees how far a long run has
/// come.
class Table {
 public:
  Table(const Options&, std::size_t rows);
  void begin(const std::vector<RankPlace>&);
  void row(const Row&);
  void end(const std::vector<Row>&) const;

 private:
  void section(Collective);
  void hint();

  const Options& options_;
  const std::size_t rows_;
  std::size_t printed_ = 0;
  std::optional<Collective> section_;  // the collective of the rows above
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// One line of the table. `checked`: whether #wrong means anything.
std::string format_row(const Row&, int ranks, bool checked);

/// Three or four digits, enough for a time, and for a bandwidth.
std::string format_number(double value);

/// The whole run as one JSON object. `peers`: of a comparison, or null.
std::string to_json(const Options&, const std::vector<RankPlace>&, const std::vector<Row>&,
                    const PeersReport* peers = nullptr);

/// Throws Error{invalid_argument} if the file could not be written, before any time is spent on its
/// contents.
void check_writable(const std::string& file);
/// Replaces the file as a whole: a reader sees the old or the new contents. What is no regular file,
/// such as a device or a link, is written to instead. Throws Error{system}.
void write_atomically(const std::string& file, const std::string& contents);

}  // namespace treering::perf
