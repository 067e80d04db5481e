#include "perf/bench/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "base/settings.hpp"
#include "base/units.hpp"
#include "kernels/ops/fold.hpp"
#include "perf/bench/pin.hpp"
#include "perf/versus/catalog.hpp"
#include "plan/choice.hpp"
#include "treering/error.hpp"

namespace treering::perf {
namespace {

constexpr const char* examples = R"(Examples:
  treering perf all_reduce                         2 processes, 8 B to 16 MiB
  treering perf all --ranks 4                      every collective
  treering perf all_reduce -b 1K -e 64M -f 4 -d bf16 -o max --threads
  treering perf all_gather --algorithm ring --registered 0 --rewrite 1
  treering perf all_to_all -b 2M -e 2M --json result.json

The exit status is 0 if every result was right, 1 if one was wrong or a rank failed, and 2 if the
command line or the environment was not understood. docs/perf.md explains columns, formulas and timing.)";

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

void at_least(const char* option, int value, int least) {
  if (value < least)
    refuse(fmt::format("{} is {}, but must be at least {}.", option, value, least));
}

/// All values of an enumeration that counts from 0.
template <class T>
std::vector<T> every(int values) {
  std::vector<T> all;
  for (int i = 0; i < values; ++i) all.push_back(static_cast<T>(i));
  return all;
}

/// One value, or all of them.
template <class T>
std::vector<T> values(const std::string& text, T (*parse)(std::string_view), int count) {
  if (text == "all") return every<T>(count);
  try {
    return {parse(text)};
  } catch (const Error& error) {
    refuse(std::string(error.what()) + " Or all.");
  }
}

std::size_t factor_of(const std::string& text) {
  std::size_t factor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (error != std::errc() || end != text.data() + text.size() || factor < 2)
    refuse(fmt::format("--stepfactor is '{}', but must be a whole number from 2 on.", text));
  return factor;
}

/// What is not given follows from what is: `-b 1G` alone means 1G only, `-e 4` alone starts at 4.
void understand_sizes(const Arguments& a, Options& o) {
  if (!a.minbytes.empty()) o.min_bytes = parse_size(a.minbytes);
  if (!a.maxbytes.empty()) o.max_bytes = parse_size(a.maxbytes);
  if (a.maxbytes.empty()) o.max_bytes = std::max(o.max_bytes, o.min_bytes);
  if (a.minbytes.empty()) o.min_bytes = std::min(o.max_bytes, o.min_bytes);
  if (o.max_bytes < o.min_bytes)
    refuse(fmt::format("--maxbytes {} is less than --minbytes {}.", a.maxbytes, a.minbytes));
  if (!a.factor.empty()) o.step_factor = factor_of(a.factor);
  if (a.stepbytes.empty()) return;
  o.step_bytes = parse_size(a.stepbytes);
  if (o.step_bytes == 0) refuse("--stepbytes is 0, but must be at least 1.");
}

std::vector<int> roots(const Arguments& a) {
  if (a.root == "all") {
    std::vector<int> all(static_cast<std::size_t>(a.ranks));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  int root = -1;
  const auto [end, error] = std::from_chars(a.root.data(), a.root.data() + a.root.size(), root);
  if (error != std::errc() || *end != '\0' || root < 0 || root >= a.ranks)
    refuse(
        fmt::format("--root is '{}', but must be a rank, 0 to {}, or all.", a.root, a.ranks - 1));
  return {root};
}

/// With all collectives it counts wherever it exists.
void check_forced(const Options& o) try {
  if (o.collectives.size() == 1)
    require(o.collectives[0], o.deterministic || settings().deterministic,
            {.algorithm = o.algorithm, .wire = o.wire});
} catch (const Error& error) {
  refuse(fmt::format("--algorithm, --wire or --deterministic: {}.", error.what()));
}

void check_environment(const Options& o) {
  static_cast<void>(ChoiceRules::parse(settings().choice));
  if (settings().device == DeviceChoice::simt && !o.threads)
    refuse("TREERING_DEVICE=simt runs all ranks in one process: add --threads.");
}

/// Peers are processes, whose inputs are rewritten; so are we.
void understand_versus(const Arguments& a, Options& o) {
  if (a.versus.empty()) {
    if (a.rounds) refuse("--rounds means nothing without --versus.");
    return;
  }
  o.versus = parse_peers(a.versus);
  o.peers_folder = a.peers_folder.empty() ? usual_peers_folder() : a.peers_folder;
  o.rounds = a.rounds.value_or(o.rounds);
  at_least("--rounds", o.rounds, 1);
  if (a.ranks < 2) refuse("--versus needs 2 ranks or more.");
  if (a.threads) refuse("--versus compares processes; leave out --threads.");
  o.rewrite = true;
  o.pin = a.pin.value_or(1) == 1;
}

}  // namespace

void declare(CLI::App& command, Arguments& a) {
  command.footer(examples);
  command.add_option("collective", a.collective)
      ->required()
      ->type_name("")
      ->description(
          "all_reduce, reduce_scatter, all_gather, all_to_all (these three with _v as well: uneven "
          "parts), "
          "broadcast, reduce, gather, scatter, barrier, or all");
  std::string group = "Ranks";
  const auto add = [&](const char* names, auto& value, const char* kind, const char* help) {
    return command.add_option(names, value, help)->type_name(kind)->group(group);
  };
  const auto zero_or_one = [](const std::string& text) {
    return text == "0" || text == "1" ? "" : fmt::format("is '{}', but must be 0 or 1", text);
  };
  const auto add_switch = [&](const char* names, auto& value, const char* help) {
    return add(names, value, "0|1", help)->check(zero_or_one);
  };

  add("--ranks", a.ranks, "N", "ranks on this machine (2)");
  auto* procs = command.add_flag("--procs", a.procs, "each rank is a process (the default)");
  auto* threads = command.add_flag("--threads", a.threads, "each rank is a thread of one process");
  procs->group(group);
  threads->group(group)->excludes(procs);
  add_switch("--pin", a.pin,
             "keep each rank on its share of the cores (1 if there is a core each)");

  group = "Sizes, in bytes; K, M, G are powers of 1024";
  add("-b,--minbytes", a.minbytes, "SIZE", "smallest (8)");
  add("-e,--maxbytes", a.maxbytes, "SIZE", "largest (16M)");
  auto* factor =
      add("-f,--stepfactor", a.factor, "N", "from one to the next: multiply by this (8)");
  add("-i,--stepbytes", a.stepbytes, "SIZE", "or add this")->excludes(factor);

  group = "Data";
  add("-d,--datatype", a.type, "TYPE",
      "u8 i8 u16 … i64 bool f8e4m3 f8e5m2 f16 bf16 f32 f64, or all (f32)");
  add("-o,--op", a.op, "OP",
      "sum prod min max avg premul_sum bit_and bit_or bit_xor, or all (sum)");
  add("-r,--root", a.root, "RANK", "or all; for collectives that have a root (0)");
  add_switch("--registered", a.registered,
             "buffers of Treering's allocator (1) or plain memory (0)");
  add("--algorithm", a.algorithm, "NAME",
      "ring, tree, one_shot, two_shot, direct …, not Treering's choice");
  add("--wire", a.wire, "NAME", "simple or ll, not Treering's choice");
  add_switch("--deterministic", a.deterministic,
             "sums that depend on nothing but inputs and rank order (0)");

  command
      .add_flag("--forced-choices", a.forced_choices,
                "how far Treering's choice is from the best forced one")
      ->group(group);

  group = "Timing";
  add("-n,--iters", a.iterations, "N", "timed iterations (20)");
  add("-w,--warmup_iters", a.warmups, "N", "iterations before those (5)");
  add("-m,--agg_iters", a.calls_per_iteration, "N", "calls in one iteration (1)");
  add_switch("--rewrite", a.rewrite,
             "write inputs anew before each iteration, to measure no warm cache (0)");

  group = "Comparison";
  add("--versus", a.versus, "NAMES",
      "openmpi, mpich, intelmpi, oneccl, gloo, nccl, joined by commas, or all that are found: time "
      "them in turn with Treering");
  add("--rounds", a.rounds, "N", "rounds of each size (20)");

  group = "Results";
  add("-c,--check", a.checks, "N", "how often each result is checked; 0: never (1)");
  add("--json", a.json, "FILE", "also write the results to this file");
  group = "";
  add("--worker", a.worker, "", "");
  add("--contender", a.contender, "", "");
  add("--peers-folder", a.peers_folder, "", "");
}

Options understand(const Arguments& a) {
  Options o;
  at_least("--ranks", a.ranks, 1);
  if (a.ranks > max_fan)
    refuse(fmt::format("--ranks is {}, but must be at most {}.", a.ranks, max_fan));
  at_least("--iters", a.iterations, 1);
  at_least("--warmup_iters", a.warmups, 0);
  at_least("--agg_iters", a.calls_per_iteration, 1);
  at_least("--check", a.checks, 0);
  const int most = std::numeric_limits<int>::max() / a.calls_per_iteration;
  if (std::max(a.iterations, a.warmups) > most)
    refuse(fmt::format("--iters and --warmup_iters must be at most {} with --agg_iters {}.", most,
                       a.calls_per_iteration));
  o.ranks = a.ranks;
  o.iterations = a.iterations;
  o.warmups = a.warmups;
  o.calls_per_iteration = a.calls_per_iteration;
  o.checks = a.checks;
  o.collectives = values(a.collective, parse_collective, collectives);
  o.ops = values(a.op, parse_reduce_op, reduce_ops);
  o.types = values(a.type, parse_data_type, data_types);
  if (a.op != "all" && a.type != "all" && !applies(o.ops[0], o.types[0]))
    refuse(fmt::format("--op {} does not apply to --datatype {}; there are: {}.", name(o.ops[0]),
                       name(o.types[0]), operators_of(o.types[0])));
  if (!a.algorithm.empty()) o.algorithm = parse_algorithm(a.algorithm);
  if (!a.wire.empty()) o.wire = parse_wire_type(a.wire);
  understand_sizes(a, o);
  o.roots = roots(a);
  o.deterministic = a.deterministic == 1;
  o.threads = a.threads;
  o.registered = a.registered == 1;
  o.rewrite = a.rewrite == 1;
  o.pin = a.pin.value_or(a.ranks <= cores()) == 1;
  o.forced_choices = a.forced_choices;
  o.json = a.json;
  understand_versus(a, o);
  check_forced(o);
  check_environment(o);
  return o;
}

}  // namespace treering::perf
