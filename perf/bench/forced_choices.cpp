#include "perf/bench/forced_choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "perf/bench/report.hpp"
#include "perf/bench/workers.hpp"
#include "plan/choice.hpp"

namespace treering::perf {
namespace {

/// What the issue of choice is held to: within 15 % of the best.
constexpr double close = 1.15;
/// LL costs several times the bytes: beyond this it is not tried.
constexpr std::size_t most_ll_bytes = 1 << 20;

using Json = nlohmann::ordered_json;

struct Outcome {
  Match match;
  std::vector<Result> results;
  Verdict verdict;
};

std::string way_of(const Result& r) {
  return fmt::format("{}/{}", name(r.algorithm), name(r.wire));
}

void print(const Outcome& o) {
  const Result &own = o.results[0], &best = o.results[o.verdict.best];
  fmt::print("{:<17} {:>9} {:<20} {:>10} {:<20} {:>10} {:>6.2f}\n", name(o.match.what.collective),
             o.match.what.bytes, way_of(own), format_time(median(own.seconds)), way_of(best),
             format_time(median(best.seconds)), o.verdict.ratio);
  std::fflush(stdout);
}

void summarise(const std::vector<Outcome>& all) {
  const auto worst =
      std::ranges::max_element(all, {}, [](const Outcome& o) { return o.verdict.ratio; });
  const auto good =
      std::ranges::count_if(all, [](const Outcome& o) { return o.verdict.ratio <= close; });
  fmt::print(
      "# within 15 % of the best forced choice: {} of {} ({:.1f} %); worst: {:.2f} ({} at {})\n",
      good, all.size(), 100.0 * static_cast<double>(good) / static_cast<double>(all.size()),
      worst->verdict.ratio, name(worst->match.what.collective),
      format_size(worst->match.what.bytes));
}

std::string to_json(const Options& o, const std::vector<Outcome>& all) {
  Json rows = Json::array();
  for (const Outcome& one : all) {
    Json contenders = Json::object();
    for (std::size_t i = 1; i < one.results.size(); ++i)
      contenders[way_of(one.results[i])] = median(one.results[i].seconds) * 1e6;
    rows.push_back({{"collective", name(one.match.what.collective)},
                    {"ranks", o.ranks},
                    {"size", one.match.what.bytes},
                    {"registered", o.registered},
                    {"chosen", way_of(one.results[0])},
                    {"time_us", median(one.results[0].seconds) * 1e6},
                    {"best", way_of(one.results[one.verdict.best])},
                    {"ratio", one.verdict.ratio},
                    {"forced_us", contenders}});
  }
  return Json{{"ranks", o.ranks}, {"registered", o.registered}, {"rows", rows}}.dump(1) + "\n";
}

}  // namespace

std::vector<Match> forced_choice_matches(const Options& o, const std::vector<Case>& cases) {
  std::vector<Match> matches;
  for (const Case& c : cases) {
    if (c.collective == Collective::barrier || c.collective != even(c.collective)) continue;
    Match match{c, {{.registered = o.registered}}, rounds_for(c.bytes)};
    for (const Algorithm a : algorithms_of(c.collective))
      for (const WireType w : {WireType::simple, WireType::ll})
        if (w == WireType::simple || c.bytes <= most_ll_bytes)
          match.contenders.push_back({.algorithm = a, .wire = w, .registered = o.registered});
    matches.push_back(std::move(match));
  }
  return matches;
}

Verdict judge(const std::vector<Result>& results) {
  std::size_t best = 1;
  for (std::size_t i = 2; i < results.size(); ++i)
    if (ratio(results[i], results[best], 0, 2) < 1) best = i;
  const bool same =
      results[best].algorithm == results[0].algorithm && results[best].wire == results[0].wire;
  return {best, same ? 1 : ratio(results[0], results[best], 1, 2)};
}

int run_forced_choices(const Options& options, const std::vector<Case>& cases,
                       const std::vector<std::string>& command_line, const std::string& worker) {
  const std::vector<Match> matches = forced_choice_matches(options, cases);
  const auto body = [&](Communicator& comm, Control& control, int pipe) {
    Contest(matches, comm, control).run(pipe);
  };
  if (!worker.empty()) return run_worker(options, body, worker);
  if (matches.empty())
    throw Error(ErrorCode::invalid_argument,
                "--forced-choices: there is nothing to choose in that collective.");
  fmt::print("# {} ranks, {} buffers; times are medians, ratios those of the same rounds\n",
             options.ranks, options.registered ? "registered" : "plain");
  fmt::print("#{:<16} {:>9} {:<20} {:>10} {:<20} {:>10} {:>6}\n", "collective", "size", "chosen",
             "time", "best", "time", "ratio");
  std::vector<Outcome> all;
  std::vector<Result> results;
  run_ranks(options, body, command_line,
            {.started = [](const std::vector<RankPlace>&) {},
             .row =
                 [&](const Message& message) {
                   const Match& match = matches.at(all.size());
                   results.push_back(Contest::result_of(message));
                   if (results.size() < match.contenders.size()) return;
                   const Verdict verdict = judge(results);
                   all.push_back({match, std::exchange(results, {}), verdict});
                   print(all.back());
                 }});
  summarise(all);
  if (!options.json.empty()) write_atomically(options.json, to_json(options, all));
  return 0;
}

}  // namespace treering::perf
