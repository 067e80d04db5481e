#include "perf/versus/versus.hpp"

#include <algorithm>

#include "kernels/exec/device.hpp"
#include "perf/versus/rounds.hpp"
#include "perf/versus/table.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

void refuse_other_devices() {
  if (device().execution() != Execution::host)
    throw Error(ErrorCode::unsupported,
                "--versus compares CPU processes only: set TREERING_DEVICE=host.");
}

/// A row for each class that occurred often enough; the others are noted.
std::vector<Row> rows_of(const Case& c, const CaseResult& result, const Field& field,
                         double bound_seconds, std::vector<Unmeasured>& unmeasured) {
  std::vector<Row> rows;
  for (const Distance distance : {Distance::near, Distance::far}) {
    std::optional<Comparison> comparison = summarize(result.rounds, field.peers(), distance);
    if (!comparison) {
      unmeasured.push_back({c, distance, rounds_in(result.rounds, distance)});
      continue;
    }
    comparison->bound_seconds = bound_seconds;
    Row row;
    row.what = c;
    row.out_of_place.measured = true;
    row.out_of_place.seconds = comparison->seconds;
    row.out_of_place.wrong = result.wrong;
    row.out_of_place.algorithm = result.ours.algorithm;
    row.out_of_place.wire = result.ours.wire;
    row.out_of_place.direct = result.direct;
    row.comparison = std::move(comparison);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

int run_versus(const Options& options, const std::vector<Case>& cases,
               const std::vector<std::string>& command_line) {
  refuse_other_devices();
  Field field(options, command_line);
  if (field.peers_left() == 0) throw Error(ErrorCode::unsupported, no_peer_text(field.report()));
  VersusTable table(options, field.peers());
  table.begin(field.report());
  std::vector<Row> all;
  std::vector<Unmeasured> unmeasured;
  double rate = 0;  // the best so far: it is a bound
  for (std::size_t i = 0; i < cases.size(); ++i) {
    rate = std::max(rate, measure_copy_rate(field));
    const double bound = options.ranks * static_cast<double>(cases[i].bytes) / rate;
    const CaseResult result = run_case(field, options, cases[i], static_cast<int>(i));
    const std::size_t known = unmeasured.size();
    const std::vector<Row> rows = rows_of(cases[i], result, field, bound, unmeasured);
    for (const Row& row : rows) table.row(row);
    for (std::size_t u = known; u < unmeasured.size(); ++u)
      table.unmeasured(unmeasured[u], static_cast<int>(result.rounds.size()));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  table.end(all);
  PeersReport report = field.report();
  report.unmeasured = std::move(unmeasured);
  if (!options.json.empty())
    write_atomically(options.json, to_json(options, field.places(), all, &report));
  return wrong_values(all) == 0 ? 0 : 1;
}

}  // namespace treering::perf
