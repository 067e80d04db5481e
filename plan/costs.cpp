#include "plan/costs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "plan/wire_shape.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// The first line of a file. Another number: another meaning of what follows.
constexpr std::string_view title = "treering costs 1";

/// What an algorithm does that costs time.
struct Effort {
  double steps;     ///< in which a rank waits for others
  double messages;  ///< that a rank sends in each of them
  double
      bytes;  ///< read and written, per byte of the array: 1 for one read and one written, and 1 more where they
  ///< come from another rank
};

/// Where ranks outnumber cores the work of all of them counts, else that of the busiest.
struct Crowd {
  double ranks;
  bool shares_cores;
};

double depth_of(const Crowd& crowd) {
  return std::bit_width(static_cast<unsigned>(crowd.ranks) - 1);
}

/// docs/algorithms.md has the formulas; a fold of s sources to d destinations copies (s+d)/2. Where steps depend on one
/// another nobody uses the time until the slowest has come: so much more.
constexpr double waiting = 0.4;

Effort all_reduce_effort(Algorithm algorithm, bool direct, const Crowd& crowd) {
  const double n = crowd.ranks, peers = n - 1;
  switch (algorithm) {
    case Algorithm::one_shot:
      return direct ? Effort{2, peers, peers + (n + 1) / 2}
                    : Effort{1, peers, 2 * peers + (n + 1) / 2};
    case Algorithm::two_shot:
      return direct ? Effort{2, peers, 2 * peers / n + 1}
                    : Effort{3, peers, 2 * peers / n + (3 * n - 2) / n + waiting};
    case Algorithm::ring:
      return {2 * peers, 1, 5.5 * peers / n + 2 * waiting};
    default:
      return {2 * depth_of(crowd) + 1, 2, 5 + 2 * waiting};
  }
}

/// Of a broadcast and, with additions, of a reduce.
Effort rooted_effort(Algorithm algorithm, bool direct, bool adds, const Crowd& crowd) {
  const double n = crowd.ranks, peers = n - 1;
  switch (algorithm) {
    case Algorithm::direct: {  // the root alone has many messages
      const double busiest = direct ? 1 : peers + 1, mean = direct ? 1 : 2 * peers / n;
      const double copies = crowd.shares_cores ? mean : busiest;
      return {adds ? 1.0 : 2.0, peers / 3, copies + (adds ? (n + 1) / 4 : 1)};
    }
    case Algorithm::tree:
      return {depth_of(crowd) + 1, 2, adds ? 3 : 2.5};
    default:
      return {peers, 1, adds ? 3 : 2.5};
  }
}

/// Where each rank has a part of the larger buffer.
Effort parts_effort(const Way& way, bool direct, const Crowd& crowd) {
  const double n = crowd.ranks, peers = n - 1, crossing = peers / n;
  const bool adds = way.collective == Collective::reduce_scatter;
  if (way.algorithm == Algorithm::ring) return {peers, 1, (adds ? 3.5 : 3) * crossing + waiting};
  const double fold = adds || way.collective == Collective::all_gather ? (n + 1) / (2 * n) : 1;
  return {2, peers, crossing + fold + (direct ? 0 : crossing)};
}

Effort effort_of(const Way& way, bool direct, const Crowd& crowd) {
  switch (way.collective) {
    case Collective::all_reduce:
      return all_reduce_effort(way.algorithm, direct, crowd);
    case Collective::broadcast:
    case Collective::reduce:
      return rooted_effort(way.algorithm, direct, way.collective == Collective::reduce, crowd);
    default:
      return parts_effort(way, direct, crowd);
  }
}

/// What that costs, and how many times as much over LL.
struct Figures {
  double step_ns, message_ns, ns_per_byte, ns_per_byte_beyond;  ///< beyond: the caches
  double ll_step, ll_byte;
};

/// CPUs: of the order that was measured on a machine of two cores (docs/tuning.md). Where ranks share cores a step takes
/// turns of the scheduler, and the ranks work one after the other.
Figures figures_of(Machine machine, double turns) {
  if (machine == Machine::gpu) return {2000, 0, 0.005, 0.005, 0.5, 2};  // not measured
  if (turns > 1) return {3000 * turns, 2000 * turns, 0.12 * turns, 0.25 * turns, 1.1, 6};
  return {250, 50, 0.12, 0.25, 1.1, 6};
}

constexpr std::size_t cached_bytes = 1 << 20;

bool is_chain(const Way& way) {
  return way.algorithm == Algorithm::ring || way.algorithm == Algorithm::tree;
}

/// Whether ranks ask one another for registered buffers first: see Mesh::wants_offers and Mesh::share.
bool asks(const Way& way, std::size_t bytes, const Crowd& crowd) {
  const bool parts = way.collective != Collective::all_reduce &&
                     way.collective != Collective::broadcast &&
                     way.collective != Collective::reduce;
  return !is_chain(way) && way.path != Path::ll &&
         static_cast<double>(bytes) > few_bytes * (parts ? crowd.ranks : 1);
}

double default_time(const Way& way, std::size_t bytes, const Crowd& crowd, const Figures& f) {
  const bool asked = asks(way, bytes, crowd), ll = way.path == Path::ll;
  Effort effort = effort_of(way, asked && way.path == Path::direct, crowd);
  if (!asked && !is_chain(way)) effort.steps = std::max(effort.steps - 1, 1.0);
  const double step = f.step_ns * (ll ? f.ll_step : 1) + f.message_ns * effort.messages;
  const double per_byte = effort.bytes * (ll ? f.ll_byte : 1);
  const auto near = static_cast<double>(std::min(bytes, cached_bytes));
  const double far = static_cast<double>(bytes) - near;
  return step * effort.steps + per_byte * (near * f.ns_per_byte + far * f.ns_per_byte_beyond);
}

Cost default_cost(const Way& way, const Crowd& crowd, const Figures& f) {
  Cost cost{};
  for (std::size_t i = 0; i < knots.size(); ++i)
    cost[i] = static_cast<float>(default_time(way, knots[i], crowd, f));
  make_sane(cost);
  return cost;
}

/// Takes the next line off a text. Throws if there is none.
std::string_view next_line(std::string_view& text, int& number) {
  const std::size_t end = text.find('\n');
  ++number;
  if (end == std::string_view::npos)
    throw Error(ErrorCode::invalid_argument, fmt::format("it ends before line {}", number));
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

/// "words 1 2 3" with those words: its numbers. Throws Error with the number of the line.
template <class T, std::size_t count>
std::array<T, count> numbers_after(std::string_view words, std::string_view line, int number) {
  const auto refuse = [&] {
    throw Error(ErrorCode::invalid_argument, fmt::format("line {} is '{}', not '{}' and {} numbers",
                                                         number, line, words, count));
  };
  if (!line.starts_with(words)) refuse();
  const char *at = line.data() + words.size(), *const end = line.data() + line.size();
  std::array<T, count> values{};
  for (T& value : values) {
    if (at == end || *at != ' ') refuse();
    const auto [rest, error] = std::from_chars(at + 1, end, value);
    if (error != std::errc()) refuse();
    at = rest;
  }
  if (at != end) refuse();
  return values;
}

std::string words_of(const Way& way) {
  return fmt::format("{} {} {}", name(way.collective), name(way.algorithm), name(way.path));
}

bool is_sane(const Cost& cost) {
  Cost sane = cost;
  make_sane(sane);
  return sane == cost;  // false for what is no number
}

}  // namespace

const char* name(Path path) noexcept {
  switch (path) {
    case Path::direct:
      return "direct";
    case Path::staged:
      return "staged";
    default:
      return "ll";
  }
}

Position position_of(std::size_t bytes) noexcept {
  std::size_t right = 1;
  while (right + 1 < knots.size() && knots[right] < bytes) ++right;
  const std::size_t begin = knots[right - 1], past = bytes > begin ? bytes - begin : 0;
  return {right - 1, static_cast<double>(past) / static_cast<double>(knots[right] - begin)};
}

Costs default_costs(Machine machine, int ranks, int cores) noexcept {
  Costs costs{.block_bytes = 256 << 10,
              .chunk_bytes = 256 << 10,
              .streaming_bytes = 4 << 20,
              .slot_streaming_bytes = UINT64_MAX,
              .of = {}};
  const bool crowded = machine == Machine::cpu && ranks > std::max(cores, 1);
  const Crowd crowd{static_cast<double>(std::max(ranks, 2)), crowded};
  const Figures figures = figures_of(machine, crowded ? crowd.ranks / std::max(cores, 1) : 1);
  for (std::size_t i = 0; i < ways.size(); ++i) costs.of[i] = default_cost(ways[i], crowd, figures);
  return costs;
}

void make_sane(Cost& cost) noexcept {
  float least = shortest_ns;
  for (float& ns : cost) {
    ns = std::isnan(ns) ? longest_ns : std::clamp(ns, least, longest_ns);
    least = ns;
  }
}

std::string to_text(const Costs& costs, std::string_view host, int ranks) {
  std::string text = fmt::format("{}\nhost {}\nranks {}\n", title, host, ranks);
  text += fmt::format("sizes {} {} {} {}\n", costs.block_bytes, costs.chunk_bytes,
                      costs.streaming_bytes, costs.slot_streaming_bytes);
  for (std::size_t i = 0; i < ways.size(); ++i)
    text += fmt::format("{} {}\n", words_of(ways[i]), fmt::join(costs.of[i], " "));
  return text + "end\n";
}

Costs parse_costs(std::string_view text, std::string_view host, int ranks) {
  int number = 0;
  const auto expect = [&](const std::string& line) {
    if (const auto found = next_line(text, number); found != line)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("line {} is '{}', not '{}'", number, found, line));
  };
  expect(std::string(title));
  expect(fmt::format("host {}", host));
  expect(fmt::format("ranks {}", ranks));
  Costs costs{};
  const auto sizes = numbers_after<std::uint64_t, 4>("sizes", next_line(text, number), number);
  if (std::ranges::find(sizes, 0U) != sizes.end())
    throw Error(ErrorCode::invalid_argument, fmt::format("line {} has a size of 0", number));
  costs.block_bytes = sizes[0];
  costs.chunk_bytes = sizes[1];
  costs.streaming_bytes = sizes[2];
  costs.slot_streaming_bytes = sizes[3];
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const std::string_view line = next_line(text, number);
    costs.of[i] = numbers_after<float, knots.size()>(words_of(ways[i]), line, number);
    if (!is_sane(costs.of[i]))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("line {} has times that cannot be: '{}'", number, line));
  }
  expect("end");
  if (!text.empty()) throw Error(ErrorCode::invalid_argument, "it goes on after its end");
  return costs;
}

}  // namespace treering
