#include "base/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <numeric>
#include <string_view>

#include "base/units.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

constexpr std::string_view prefix = "TREERING_";
constexpr std::string_view of_tests = "TREERING_TEST_";  // which the library does not look at

/// Thrown by readers, which know neither the variable nor its valid values.
struct NotUnderstood {};

template <class T>
T number(std::string_view text, T least, T most) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least || value > most) throw NotUnderstood{};
  return value;
}

std::size_t size(std::string_view text, std::size_t least, std::size_t most = SIZE_MAX) {
  const std::size_t bytes = parse_size(text);
  if (bytes < least || bytes > most) throw NotUnderstood{};
  return bytes;
}

std::optional<int> number_or_none(std::string_view text, int least) {
  return text == "none" ? std::nullopt : std::optional(number(text, least, INT_MAX));
}

DeviceChoice device_choice(std::string_view text) {
  if (text == "auto") return DeviceChoice::automatic;
  if (text == "cuda") return DeviceChoice::cuda;
  if (text == "host") return DeviceChoice::host;
  if (text == "simt") return DeviceChoice::simt;
  throw NotUnderstood{};
}

LogLevel log_level(std::string_view text) {
  if (text == "error") return LogLevel::error;
  if (text == "warn") return LogLevel::warn;
  if (text == "info") return LogLevel::info;
  if (text == "debug") return LogLevel::debug;
  throw NotUnderstood{};
}

struct Variable {
  std::string_view name, values, fallback, meaning;
  void (*read)(Settings&, std::string_view value);
};

// clang-format off
constexpr Variable variables[] = {
    {"TREERING_DEVICE", "`auto`, `cuda`, `host`, `simt`", "auto",
     "What runs the kernels: GPUs, the CPU, or the simulated GPU that tests use. `auto`: a GPU if there is one, else the CPU.",
     [](Settings& s, std::string_view v) { s.device = device_choice(v); }},
    {"TREERING_ALGORITHM", "`auto`, `ring`, `tree`, `one_shot`, `two_shot`, `direct`, `dissemination`, `pairwise`", "auto",
     "The algorithm of every collective that has it; `auto`: by plan.",
     [](Settings& s, std::string_view v) {
       s.algorithm = v == "auto" ? std::nullopt : std::optional(parse_algorithm(v));
     }},
    {"TREERING_WIRE", "`auto`, `simple`, `ll`", "auto",
     "How messages travel, in every collective that moves data: `simple` for bandwidth, `ll` for latency (docs/wires.md); `auto`: by plan.",
     [](Settings& s, std::string_view v) { s.wire = v == "auto" ? std::nullopt : std::optional(parse_wire_type(v)); }},
    {"TREERING_CHOICE", "rules, such as `all_reduce:0-64K=one_shot,64K-=two_shot`", "none",
     "What is forced at which sizes, before the two variables above (docs/tuning.md); `none`: nothing.",
     [](Settings& s, std::string_view v) { s.choice = v == "none" ? "" : v; }},
    {"TREERING_DETERMINISTIC", "0, 1", "0",
     "1: reductions depend on nothing but the inputs and the order of the ranks (docs/numerics.md).",
     [](Settings& s, std::string_view v) { s.deterministic = number(v, 0, 1) == 1; }},
    {"TREERING_BLOCKS", "0 to 512", "0", "Blocks that work on one call of a rank; 0: by plan.",
     [](Settings& s, std::string_view v) { s.blocks = number(v, 0, 512); }},
    {"TREERING_SLOT", "a size up to 1G", "0", "Bytes of a slot, the largest message between two ranks; 0: by plan. Two of them for each wire must fit into the inbox.",
     [](Settings& s, std::string_view v) { s.slot = size(v, 0, 1 << 30); }},
    {"TREERING_INBOX", "a size from 4K", "12M", "Memory of a rank for all slots and posts that it receives into.",
     [](Settings& s, std::string_view v) { s.inbox = size(v, 4 << 10); }},
    {"TREERING_ARENA", "a size from 64M", "64G",
     "Address space of a process for memory that other processes may map. Only what is allocated in it costs memory.",
     [](Settings& s, std::string_view v) { s.arena = size(v, 64 << 20); }},
    {"TREERING_HOST_THREADS", "`auto`, or 1 to 1024", "auto",
     "Threads that run a rank's blocks on the CPU. `auto`: as many as there are cores for each rank.",
     [](Settings& s, std::string_view v) { s.host_threads = v == "auto" ? 0 : number(v, 1, 1024); }},
    {"TREERING_START_TIMEOUT", "seconds, 1 to 86400", "120",
     "How long a rank waits at start for the others.",
     [](Settings& s, std::string_view v) { s.start_timeout = std::chrono::seconds(number(v, 1, 86400)); }},
    {"TREERING_RANK", "`none`, or a whole number", "none",
     "This process's rank, for `create_from_environment`; comes before what a launcher says. With `TREERING_SIZE` and `TREERING_ID`.",
     [](Settings& s, std::string_view v) { s.rank = number_or_none(v, 0); }},
    {"TREERING_SIZE", "`none`, or a number from 1", "none", "The number of ranks, with `TREERING_RANK`.",
     [](Settings& s, std::string_view v) { s.size = number_or_none(v, 1); }},
    {"TREERING_ID", "any words", "none",
     "Words that all ranks of a job share and no other job has; `none`: what the launcher calls the job.",
     [](Settings& s, std::string_view v) { s.id = v == "none" ? "" : v; }},
    {"TREERING_LOG", "`error`, `warn`, `info`, `debug`", "warn", "The least important lines that are logged, on stderr.",
     [](Settings& s, std::string_view v) { s.log = log_level(v); }},
    {"TREERING_SIMT_SEED", "a whole number", "1",
     "Seed of the simulated GPU's scheduler: the same seed, the same interleaving of threads.",
     [](Settings& s, std::string_view v) { s.simt_seed = number(v, std::uint64_t{0}, UINT64_MAX); }},
    {"TREERING_SIMT_THREADS", "1 to 1024", "32", "Threads of a block on the simulated GPU.",
     [](Settings& s, std::string_view v) { s.simt_threads = number(v, 1, 1024); }},
    {"TREERING_SIMT_PATIENCE", "milliseconds, 1 to 86400000", "2000",
     "How long the simulated GPU lets its threads wait for something outside it before it reports a kernel that is stuck.",
     [](Settings& s, std::string_view v) { s.simt_patience = std::chrono::milliseconds(number(v, 1, 86'400'000)); }},
};
// clang-format on

void read(Settings& settings, const Variable& variable, std::string_view value) try {
  variable.read(settings, value);
} catch (const NotUnderstood&) {
  throw Error(ErrorCode::invalid_setting,
              fmt::format("The environment variable {}={} is not understood. Valid: {}.",
                          variable.name, value, variable.values));
} catch (const Error& error) {  // a parser's own words
  throw Error(ErrorCode::invalid_setting,
              fmt::format("The environment variable {}={} is not understood. Valid: {}. ({})",
                          variable.name, value, variable.values, error.what()));
}

const Variable* find_variable(std::string_view name) {
  const auto* found = std::ranges::find(variables, name, &Variable::name);
  return found == std::end(variables) ? nullptr : found;
}

/// Letters to insert, delete or replace to turn one word into the other (Levenshtein 1965).
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t replaced = diagonal + (letter == to[i] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, row[i] + 1, row[i + 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string_view> names_like(std::string_view name) {
  constexpr std::size_t most = 2;
  std::vector<std::string_view> names;
  for (const Variable& variable : variables) names.push_back(variable.name);
  std::ranges::sort(names, {}, [&](std::string_view other) {
    return std::pair(distance(name, other), other);  // among equals, by the alphabet
  });
  names.resize(most);
  return names;
}

Environment process_environment() {
  Environment pairs;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (text.starts_with(prefix) && equals != std::string_view::npos)
      pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

}  // namespace

Settings parse_settings(const Environment& environment) {
  Settings settings{};
  for (const Variable& variable : variables) read(settings, variable, variable.fallback);
  for (const auto& [name, value] : environment)
    if (const Variable* variable = find_variable(name); variable != nullptr && !value.empty())
      read(settings, *variable, value);
  return settings;
}

std::vector<std::string> unknown_settings(const Environment& environment) {
  std::vector<std::string> warnings;
  for (const auto& [name, value] : environment)
    if (name.starts_with(prefix) && !name.starts_with(of_tests) && find_variable(name) == nullptr)
      warnings.push_back(
          fmt::format("There is no environment variable {}; it is ignored. Similar names: {}.",
                      name, fmt::join(names_like(name), ", ")));
  return warnings;
}

const Settings& settings() {
  static const Settings instance = [] {
    const Environment environment = process_environment();
    const Settings parsed = parse_settings(environment);
    set_log_level(parsed.log);
    for (const std::string& warning : unknown_settings(environment))
      log(LogLevel::warn, "{}", warning);
    return parsed;
  }();
  return instance;
}

std::string settings_markdown() {
  std::string text = "| Variable | Values | Default | Meaning |\n| --- | --- | --- | --- |\n";
  for (const Variable& variable : variables)
    text += fmt::format("| `{}` | {} | `{}` | {} |\n", variable.name, variable.values,
                        variable.fallback, variable.meaning);
  return text;
}

}  // namespace treering
