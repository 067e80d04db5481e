#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/units.hpp"
#include "perf/bench/report.hpp"
#include "perf/patterns.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

constexpr const char* layout = "{:>12} {:>12} {:>6} {:>6} {:>4} {:>17} {:>13}  {}  {}";
constexpr const char* half_layout = "{:>9} {:>8} {:>8} {:>7}";

std::string format_half(const Measurement& m, const Case& c, int ranks, bool checked) {
  if (!m.measured) return fmt::format(half_layout, "-", "-", "-", "-");
  const double algorithm = bandwidth(c.bytes, m.seconds);
  return fmt::format(half_layout, format_number(m.seconds * 1e6), format_number(algorithm),
                     format_number(algorithm * bus_factor(c.collective, ranks)),
                     checked ? std::to_string(m.wrong) : "N/A");
}

/// The names of the columns; `#` takes the place of a blank.
std::string heading() {
  const std::string half = fmt::format(half_layout, "time", "algbw", "busbw", "#wrong");
  const std::string units = fmt::format("{:>9} {:>8} {:>8}", "(us)", "(GB/s)", "(GB/s)");
  std::string lines[] = {
      fmt::format(layout, "", "", "", "", "", "", "", fmt::format("{:^35}", "out of place"),
                  fmt::format("{:>21}", "in place")),
      fmt::format(layout, "size", "count", "type", "redop", "root", "algorithm", "wire", half,
                  half),
      fmt::format(layout, "(B)", "(elements)", "", "", "", "", "", fmt::format("{:35}", units),
                  units)};
  for (std::string& line : lines) line[0] = '#';
  return fmt::format("{}", fmt::join(lines, "\n"));
}

bool hints_are_seen() { return isatty(STDERR_FILENO) != 0; }

std::string steps(const Options& o) {
  if (o.step_bytes > 0) return fmt::format("in steps of {}", format_size(o.step_bytes));
  return fmt::format("by factors of {}", o.step_factor);
}

}  // namespace

std::string format_number(double value) {
  return fmt::format("{:.{}f}", value, value < 99.995 ? 2 : value < 999.95 ? 1 : 0);
}

std::string format_row(const Row& row, int ranks, bool checked) {
  const Case& c = row.what;
  const bool is_barrier = c.collective == Collective::barrier;
  return fmt::format(layout, c.bytes, c.count, is_barrier ? "none" : name(c.type),
                     reduces(c.collective) ? name(c.op) : "none", c.root, algorithm_text(row),
                     wire_text(row), format_half(row.out_of_place, c, ranks, checked),
                     format_half(row.in_place, c, ranks, checked));
}

Table::Table(const Options& options, std::size_t rows) : options_(options), rows_(rows) {}

void Table::begin(const std::vector<RankPlace>& places) {
  const Options& o = options_;
  fmt::print("# treering {}: {} ranks as {}, {}, {}pinned to cores\n", TREERING_VERSION, o.ranks,
             o.threads ? "threads" : "processes",
             o.registered ? "registered buffers" : "plain buffers", o.pin ? "" : "not ");
  fmt::print("# {} to {} {}; {} warm-up and {} timed iterations of {} call{}, {}; checked: {}\n",
             format_size(o.min_bytes), format_size(o.max_bytes), steps(o), o.warmups, o.iterations,
             o.calls_per_iteration, o.calls_per_iteration > 1 ? "s" : "",
             o.rewrite ? "inputs rewritten before each, median" : "back to back, mean",
             o.checks > 0 ? fmt::format("{}×", o.checks) : "no");
  fmt::print("#\n");
  char host[256] = "?";
  gethostname(host, sizeof host - 1);
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    fmt::print("#  rank {:>3}  host {}  pid {:>7}  device {}\n", rank, host, places[rank].process,
               places[rank].device);
  fmt::print("#\n{}\n", heading());
}

void Table::section(Collective collective) {
  section_ = collective;
  if (collective == Collective::barrier) {
    fmt::print("# barrier: moves no data\n");
    return;
  }
  fmt::print("# {}: algbw = size/time, busbw = algbw × {} = algbw × {:.4g}, n = {}\n",
             name(collective), bus_formula(collective), bus_factor(collective, options_.ranks),
             options_.ranks);
}

void Table::row(const Row& row) {
  if (hints_are_seen()) fmt::print(stderr, "\r\033[K");
  if (section_ != row.what.collective) section(row.what.collective);
  fmt::print("{}\n", format_row(row, options_.ranks, options_.checks > 0));
  std::fflush(stdout);
  ++printed_;
  hint();
}

void Table::hint() {
  const bool is_long = std::chrono::steady_clock::now() - begin_ > std::chrono::seconds(2);
  if (hints_are_seen() && is_long && printed_ < rows_)
    fmt::print(stderr, "{} of {} rows …", printed_, rows_);
}

void Table::end(const std::vector<Row>& rows) const {
  const std::uint64_t wrong = wrong_values(rows), broken = broken_guards(rows);
  const auto verdict = [&](std::uint64_t bad) {
    return options_.checks == 0 ? "not checked" : bad == 0 ? "OK" : "FAILED";
  };
  fmt::print("#\n# Wrong values        : {} {}\n", wrong, verdict(wrong));
  fmt::print("# Out of bounds values: {} {}\n", broken, verdict(broken));
  fmt::print("# Avg bus bandwidth   : {:.6g} GB/s\n", average_bus_bandwidth(rows, options_.ranks));
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Error(ErrorCode::system,
                fmt::format("The results cannot be printed: {}.", std::strerror(errno)));
}

}  // namespace treering::perf
