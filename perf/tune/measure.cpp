#include "perf/tune/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "perf/tune/fit.hpp"

namespace treering::perf {
namespace {

constexpr std::array<std::size_t, 4> chunks{32 << 10, 64 << 10, 128 << 10, 256 << 10};
constexpr std::array<std::size_t, 2> chunk_sizes{2 << 20, 16 << 20};
constexpr std::array<std::size_t, 6> store_sizes{64 << 10, 256 << 10, 1 << 20,
                                                 4 << 20,  8 << 20,   16 << 20};
/// LL is for short messages: measured up to here.
constexpr std::size_t most_ll_bytes = 16 << 10;

/// The policies are those of the algorithm that is used for most data.
constexpr Way direct{Collective::all_reduce, Algorithm::two_shot, Path::direct};
constexpr Way staged{Collective::all_reduce, Algorithm::two_shot, Path::staged};

Case case_of(Collective collective, std::size_t bytes, int ranks) {
  const bool adds = reduces(collective);
  const DataType type = adds ? DataType::f32 : DataType::u8;  // so that few bytes can be shared out
  const bool whole = collective == Collective::all_reduce || collective == Collective::broadcast ||
                     collective == Collective::reduce;
  const std::size_t shares = whole ? 1 : static_cast<std::size_t>(ranks);
  const std::size_t count = std::max<std::size_t>(bytes / size_of(type) / shares, 1);
  return {collective,
          type,
          ReduceOp::sum,
          count,
          count * shares * size_of(type),
          has_root(collective) ? 0 : -1};
}

/// `policies`: words of a choice, or nothing.
Contender contender(const Way& way, const std::string& policies) {
  return {.algorithm = way.algorithm,
          .wire = way.path == Path::ll ? WireType::ll : WireType::simple,
          .choice = policies.empty() ? "" : fmt::format("{}:{}", name(way.collective), policies),
          .registered = way.path == Path::direct};
}

Match stores(const Way& way, std::size_t bytes, int ranks, const char* cached,
             const char* streaming) {
  return {case_of(way.collective, bytes, ranks),
          {contender(way, cached), contender(way, streaming)},
          rounds_for(bytes)};
}

/// What the policies say of that size; nothing where none of them matters.
std::string policies_at(const Costs& c, std::size_t bytes) {
  if (bytes < std::min(c.chunk_bytes, store_sizes.front())) return "";
  return fmt::format("chunk{}/{}/{}", c.chunk_bytes,
                     bytes >= c.streaming_bytes ? "streaming" : "cached",
                     bytes >= c.slot_streaming_bytes ? "streaming_slots" : "cached_slots");
}

/// By the ratio to the first contender's, round by round: so what changes between rounds changes it for all alike.
double typical_seconds(const std::vector<Result>& results, std::size_t contender) {
  return median(results[0].seconds) * ratio(results[contender], results[0]);
}

std::size_t last_knot(const Way& way) {
  std::size_t count = 0;
  while (count < knots.size() && (way.path != Path::ll || knots[count] <= most_ll_bytes)) ++count;
  return count;
}

}  // namespace

std::vector<Match> policy_matches(int ranks) {
  std::vector<Match> matches;
  for (const std::size_t bytes : chunk_sizes) {
    Match match{case_of(staged.collective, bytes, ranks), {}, rounds_for(bytes)};
    for (const std::size_t chunk : chunks)
      match.contenders.push_back(contender(staged, fmt::format("chunk{}", chunk)));
    matches.push_back(std::move(match));
  }
  for (const std::size_t bytes : store_sizes)
    matches.push_back(stores(direct, bytes, ranks, "cached", "streaming"));
  for (const std::size_t bytes : store_sizes)
    matches.push_back(stores(staged, bytes, ranks, "cached_slots", "streaming_slots"));
  return matches;
}

void apply_policies(Costs& costs, std::span<const Match> matches,
                    std::span<const std::vector<Result>> results) {
  double least = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {  // compared with the largest
    double product = 1;
    for (std::size_t m = 0; m < chunk_sizes.size(); ++m)
      product *= ratio(results[m][i], results[m].back());
    if (i == 0 || product <= least) costs.chunk_bytes = chunks[i], least = product;
  }
  const auto from = [&](std::size_t first) {
    std::vector<Comparison> all;
    for (std::size_t i = first; i < first + store_sizes.size(); ++i)
      all.push_back({matches[i].what.bytes, ratio(results[i][1], results[i][0])});
    return crossover(all);
  };
  costs.streaming_bytes = from(chunk_sizes.size());
  costs.slot_streaming_bytes = from(chunk_sizes.size() + store_sizes.size());
}

std::vector<Match> way_matches(const Costs& costs, int ranks) {
  std::vector<Match> matches;
  for (int c = 0; c < collectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    if (collective != even(collective) || ways_of(collective).end == 0) continue;
    for (std::size_t k = 0; k < knots.size(); ++k) {
      const std::string policies = policies_at(costs, knots[k]);
      Match match{case_of(collective, knots[k], ranks), {}, rounds_for(knots[k])};
      for (std::size_t w = ways_of(collective).begin; w < ways_of(collective).end; ++w)
        if (k < last_knot(ways[w])) match.contenders.push_back(contender(ways[w], policies));
      matches.push_back(std::move(match));
    }
  }
  return matches;
}

void apply_ways(Costs& costs, std::span<const Match> matches,
                std::span<const std::vector<Result>> results) {
  std::array<std::vector<double>, ways.size()> seconds;
  for (std::size_t m = 0; m < matches.size(); ++m) {
    const std::size_t knot = m % knots.size();
    std::size_t contender = 0;
    const WayRange range = ways_of(matches[m].what.collective);
    for (std::size_t w = range.begin; w < range.end; ++w)
      if (knot < last_knot(ways[w])) seconds[w].push_back(typical_seconds(results[m], contender++));
  }
  for (std::size_t w = 0; w < ways.size(); ++w) costs.of[w] = cost_from(seconds[w]);
}

}  // namespace treering::perf
