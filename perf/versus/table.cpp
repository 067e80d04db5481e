#include "perf/versus/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/units.hpp"

namespace treering::perf {
namespace {

constexpr const char* layout =
    "{:>12} {:>6} {:>6} {:>5} {:>4}  {:>13} {:>6} {:>10} {:>8} {:>10}  {:>8} {:>6} {:>13}";

std::string us(double seconds) { return format_number(seconds * 1e6); }

std::string range(const Spread& ratio) {
  return fmt::format("{:.2f}-{:.2f}", ratio.low, ratio.high);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string heading(const std::vector<std::string>& peers) {
  std::string line =
      fmt::format(layout, "size (B)", "type", "redop", "dist", "rnds", "algorithm", "wire",
                  "time (us)", "busbw", "bound (us)", "best", "ratio", "middle half");
  for (const std::string& peer : peers) line += fmt::format(" {:>10}", peer);
  line[0] = '#';
  return line;
}

}  // namespace

std::string format_versus_row(const Row& row, int ranks, const std::vector<std::string>& peers) {
  const Case& c = row.what;
  const Comparison& versus = *row.comparison;
  const bool alone = versus.peers.empty();
  std::string line = fmt::format(
      layout, c.bytes, c.collective == Collective::barrier ? "none" : name(c.type),
      reduces(c.collective) ? name(c.op) : "none", name(versus.distance), versus.rounds,
      algorithm_text(row), wire_text(row), us(versus.seconds),
      format_number(bandwidth(c.bytes, versus.seconds) * bus_factor(c.collective, ranks)),
      us(versus.bound_seconds), alone ? "-" : versus.best_peer,
      alone ? "-" : fmt::format("{:.2f}", versus.ratio.middle), alone ? "-" : range(versus.ratio));
  for (const std::string& peer : peers) {
    const auto found = std::find_if(versus.peers.begin(), versus.peers.end(),
                                    [&](const PeerSummary& p) { return p.name == peer; });
    line += fmt::format(" {:>10}", found == versus.peers.end() ? "-" : us(found->seconds));
  }
  return line;
}

std::string no_peer_text(const PeersReport& report) {
  std::string text = "There is no peer to compare with.";
  for (const auto& [peer, why] : report.unavailable) text += fmt::format("\n  {}: {}", peer, why);
  return text;
}

VersusTable::VersusTable(const Options& options, std::vector<std::string> peers)
    : options_(options), peers_(std::move(peers)) {}

void VersusTable::begin(const PeersReport& report) const {
  const Options& o = options_;
  fmt::print(
      "# treering {} and others: {} ranks as processes, ours with {} buffers, {}pinned to cores\n",
      TREERING_VERSION, o.ranks, o.registered ? "registered" : "plain", o.pin ? "" : "not ");
  fmt::print("# {} rounds of up to {} iterations each, inputs rewritten before each\n", o.rounds,
             o.iterations);
  for (const auto& [peer, version] : report.versions)
    fmt::print("#   {:>9}  {}\n", peer, first_line(version));
  for (const auto& [peer, why] : report.unavailable)
    fmt::print("#   {:>9}  not available: {}\n", peer, why);
  fmt::print(
      "# dist: cores near (a flag exchange takes less than {:.2f} us, before and after the round) "
      "or far.\n"
      "# bound: n x size / the bytes that all ranks together copy in a second. ratio: time of the "
      "fastest\n"
      "# peer of a round / ours, median over rounds. Times: medians, us.\n",
      near_below_seconds * 1e6);
  fmt::print("#\n{}\n", heading(peers_));
  std::fflush(stdout);
}

void VersusTable::section(Collective collective) {
  if (section_ == collective) return;
  section_ = collective;
  fmt::print("# {}{}\n", name(collective), collective == Collective::broadcast ? ", in place" : "");
}

void VersusTable::row(const Row& row) {
  section(row.what.collective);
  fmt::print("{}\n", format_versus_row(row, options_.ranks, peers_));
  std::fflush(stdout);
}

void VersusTable::unmeasured(const Unmeasured& gap, int rounds) {
  section(gap.what.collective);
  fmt::print("# {} B, {}: unmeasured ({} of {} rounds)\n", gap.what.bytes, name(gap.distance),
             gap.rounds, rounds);
  std::fflush(stdout);
}

void VersusTable::end(const std::vector<Row>& rows) const {
  const std::uint64_t wrong = wrong_values(rows);
  fmt::print("#\n# Wrong values: {} {}\n", wrong,
             options_.checks == 0 ? "not checked"
             : wrong == 0         ? "OK"
                                  : "FAILED");
}

}  // namespace treering::perf
