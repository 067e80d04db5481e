#include "perf/tune/command.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/units.hpp"
#include "collectives/costs_file.hpp"
#include "perf/bench/pin.hpp"
#include "perf/bench/workers.hpp"
#include "perf/tune/measure.hpp"

namespace treering::perf {
namespace {

constexpr int most_ranks = 64;

struct Range {
  int first, last;
};

Range ranks_of(const std::string& text) {
  if (text.empty()) {
    const int usual = std::clamp(cores(), 2, 8);
    return {usual, usual};
  }
  Range range{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read = std::from_chars(text.data(), end, range.first);
  range.last = range.first;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, range.last);
  if (read.ec != std::errc() || read.ptr != end || range.first < 2 || range.last < range.first ||
      range.last > most_ranks)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--ranks is '{}', but must be a number from 2 to {}, or two: 2-8.",
                            text, most_ranks));
  return range;
}

Options options_for(int ranks) {
  Options options;
  options.ranks = ranks;
  options.pin = ranks <= cores();
  return options;
}

/// What is measured together. The ranks are processes, which get their matches from the command line.
struct Step {
  int ranks;
  std::vector<Match> matches;
  std::vector<std::string> command_line;
};

/// Shows how far it is, where somebody sees it.
class Progress {
 public:
  Progress(int ranks, const char* what, std::size_t all) : ranks_(ranks), what_(what), all_(all) {}
  void show(std::size_t done) const {
    if (isatty(STDERR_FILENO) == 0) return;
    fmt::print(stderr, "\r\033[K{} ranks: {}, {} of {}{}", ranks_, what_, done, all_,
               done == all_ ? "\r\033[K" : "");
  }

 private:
  int ranks_;
  const char* what_;
  std::size_t all_;
};

std::vector<std::vector<Result>> play(const Step& step, const char* what) {
  std::vector<std::vector<Result>> results(1);
  const Progress progress(step.ranks, what, step.matches.size());
  const auto none = [](Communicator&, Control&, int) {};
  run_ranks(options_for(step.ranks), none, step.command_line,
            {.started = [](const std::vector<RankPlace>&) {},
             .row =
                 [&](const Message& message) {
                   results.back().push_back(Contest::result_of(message));
                   if (results.back().size() < step.matches[results.size() - 1].contenders.size())
                     return;
                   progress.show(results.size());
                   results.emplace_back();
                 }});
  results.pop_back();
  return results;
}

std::string policies_text(const Costs& c) {
  return fmt::format("{},{},{}", c.chunk_bytes, c.streaming_bytes, c.slot_streaming_bytes);
}

void read_policies(const std::string& text, Costs& c) {
  std::size_t chunk = 0, streaming = 0, slots = 0;
  if (std::sscanf(text.c_str(), "%zu,%zu,%zu", &chunk, &streaming, &slots) != 3)
    throw Error(ErrorCode::invalid_argument, "--policies is not understood");
  c.chunk_bytes = chunk;
  c.streaming_bytes = streaming;
  c.slot_streaming_bytes = slots;
}

std::string size_text(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "never" : "from " + format_size(bytes);
}

/// Other programs' work would be taken for the cost of ours.
void warn_if_busy() {
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5 * cores())
    fmt::print(
        stderr,
        "treering: this machine is busy (load {:.1f} on {} cores). What is measured now may be "
        "worse than the built-in costs; tune again when it is not.\n",
        load, cores());
}

void tune(int ranks, const std::string& program) {
  const auto begin = std::chrono::steady_clock::now();
  Costs costs = default_costs(Machine::cpu, ranks, cores());
  std::vector<std::string> words{program, "tune", "--ranks", std::to_string(ranks)};
  const auto policies = policy_matches(ranks);
  apply_policies(costs, policies, play({ranks, policies, words}, "chunks and stores"));
  words.insert(words.end(), {"--policies", policies_text(costs)});
  const auto ways = way_matches(costs, ranks);
  apply_ways(costs, ways, play({ranks, ways, words}, "algorithms"));
  store_costs(costs, ranks);
  fmt::print(
      "{} ranks: chunks of {}; results bypass the caches {}, slots {}; {}, in {}\n", ranks,
      format_size(costs.chunk_bytes), size_text(costs.streaming_bytes),
      size_text(costs.slot_streaming_bytes),
      format_time(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()),
      costs_file(ranks).string());
  std::fflush(stdout);
}

int work(const TuneArguments& arguments, int ranks) {
  Costs policies = default_costs(Machine::cpu, ranks, cores());
  if (!arguments.policies.empty()) read_policies(arguments.policies, policies);
  const auto matches =
      arguments.policies.empty() ? policy_matches(ranks) : way_matches(policies, ranks);
  const auto body = [&](Communicator& comm, Control& control, int pipe) {
    Contest(matches, comm, control).run(pipe);
  };
  return run_worker(options_for(ranks), body, arguments.worker);
}

}  // namespace

void declare(CLI::App& command, TuneArguments& a) {
  command
      .add_option("--ranks", a.ranks,
                  "of which number, such as 4 or 2-8 (as many as cores, at most 8)")
      ->type_name("N[-M]");
  command.add_option("--policies", a.policies, "")->group("");
  command.add_option("--worker", a.worker, "")->group("");
  command.footer(
      "Measures, some ten seconds for each number of ranks, and keeps the result in the user's\n"
      "cache folder, where communicators of as many ranks find it. docs/tuning.md explains it.");
}

int run(const TuneArguments& arguments, const std::string& program) {
  const Range range = ranks_of(arguments.ranks);
  if (!arguments.worker.empty()) return work(arguments, range.first);
  warn_if_busy();
  for (int ranks = range.first; ranks <= range.last; ++ranks) tune(ranks, program);
  return 0;
}

}  // namespace treering::perf
