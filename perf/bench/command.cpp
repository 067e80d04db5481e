#include "perf/bench/command.hpp"

#include "perf/bench/forced_choices.hpp"
#include "perf/bench/rank.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/workers.hpp"
#include "perf/versus/ours.hpp"
#include "perf/versus/versus.hpp"

namespace treering::perf {

int run(const Arguments& arguments, const std::vector<std::string>& command_line) {
  const Options options = understand(arguments);
  const std::vector<Case> cases = make_cases(options);
  if (!arguments.contender.empty()) return attend_as_ours(options, arguments.contender);
  if (!options.json.empty() && arguments.worker.empty()) check_writable(options.json);
  if (options.forced_choices)
    return run_forced_choices(options, cases, command_line, arguments.worker);
  const auto body = [&](Communicator& comm, Control& control, int pipe) {
    Rank(options, cases, comm, control).run(pipe);
  };
  if (!arguments.worker.empty()) return run_worker(options, body, arguments.worker);
  if (!options.versus.empty()) return run_versus(options, cases, command_line);

  Table table(options, cases.size());
  std::vector<RankPlace> places;
  std::vector<Row> rows;
  run_ranks(options, body, command_line,
            {.started =
                 [&](const std::vector<RankPlace>& started) {
                   places = started;
                   table.begin(places);
                 },
             .row =
                 [&](const Message& message) {
                   rows.push_back({cases.at(rows.size()), message.out_of_place, message.in_place});
                   table.row(rows.back());
                 }});
  table.end(rows);
  if (!options.json.empty()) write_atomically(options.json, to_json(options, places, rows));
  return wrong_values(rows) + broken_guards(rows) == 0 ? 0 : 1;
}

}  // namespace treering::perf
