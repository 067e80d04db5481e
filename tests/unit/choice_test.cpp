// The plan's choice: costs and their file, what is cheapest, what can be forced.

#include "plan/choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "treering/error.hpp"

namespace treering {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using enum Algorithm;

constexpr int ranks = 4;

Cost line(float latency, float per_byte) {
  Cost cost{};
  for (std::size_t i = 0; i < knots.size(); ++i)
    cost[i] = latency + per_byte * static_cast<float>(knots[i]);
  return cost;
}

/// Costs in which each way has latency and bandwidth of its own; all others are dearer than any of these.
Costs costs_of(std::initializer_list<std::pair<Way, Cost>> known) {
  Costs costs = default_costs(Machine::cpu, ranks, 8);
  costs.of.fill(line(1e9, 1e3));
  for (const auto& [way, cost] : known)
    costs.of[static_cast<std::size_t>(std::ranges::find(ways, way) - ways.begin())] = cost;
  return costs;
}

Situation situation(std::size_t bytes, Collective collective = Collective::all_reduce) {
  return {.collective = collective,
          .bytes = bytes,
          .element_bytes = 4,
          .size = ranks,
          .channels = 8,
          .all_channels = false,
          .registered = false,
          .shape = {8, 256 << 10}};
}

std::string error_of(auto action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(name(error.code())) + ": " + error.what();
  }
  return "no error";
}

// ---- costs ----

TEST(Ways, AreAllThatThereAre) {
  std::size_t count = 0;
  for (int i = 0; i < collectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (collective == Collective::barrier || collective != even(collective)) continue;
    std::vector<Algorithm> known;
    const WayRange range = ways_of(collective);
    for (std::size_t w = range.begin; w < range.end; ++w, ++count) {
      ASSERT_EQ(ways[w].collective, collective) << "those of one collective follow one another";
      if (known.empty() || known.back() != ways[w].algorithm) known.push_back(ways[w].algorithm);
    }
    EXPECT_TRUE(std::ranges::equal(known, algorithms_of(collective))) << name(collective);
  }
  EXPECT_EQ(count, ways.size());
  EXPECT_EQ(ways_of(Collective::barrier).end, 0U);
}

TEST(Costs, AreLinesBetweenKnots) {
  const Cost cost{100, 200, 300, 400, 500, 1000, 2000, 3000, 4000, 5000, 40'000, 400'000};
  const auto time = [&](std::size_t bytes) { return time_at(cost, position_of(bytes)); };
  EXPECT_EQ(time(0), 100);
  for (std::size_t i = 0; i < knots.size(); ++i) EXPECT_EQ(time(knots[i]), cost[i]) << i;
  EXPECT_EQ(time(36), 150);                           // half way from 8 to 64
  EXPECT_EQ(time((4 << 10) + (3 << 10)), 500 + 125);  // a quarter of the way from 4 K to 16 K
  EXPECT_EQ(time(28 << 20), 400'000 + 360'000);       // as far again as from 4 M to 16 M
}

TEST(Costs, AreMadeSane) {
  Cost cost{-5, 7, 10, 7, 20, NAN, 30, 40, INFINITY, 60, 70, 80};
  make_sane(cost);
  EXPECT_THAT(cost, testing::ElementsAre(1, 7, 10, 10, 20, longest_ns, longest_ns, longest_ns,
                                         longest_ns, longest_ns, longest_ns, longest_ns));
}

TEST(Costs, BuiltInAreSaneForAllSizes) {
  for (const Machine machine : {Machine::cpu, Machine::gpu})
    for (const int n : {2, 3, 8, 300})
      for (const int cores : {0, 1, 2, 64}) {
        const Costs costs = default_costs(machine, n, cores);
        for (Cost cost : costs.of) {
          const Cost before = cost;
          make_sane(cost);
          EXPECT_EQ(cost, before);
          EXPECT_LT(cost[0], cost.back());
        }
      }
}

TEST(Costs, SurviveTheirFile) {
  Costs costs = default_costs(Machine::cpu, 3, 2);
  costs.chunk_bytes = 65536;
  costs.of[5] = {1.5F, 2.25F, 1e3F, 1e4F, 1.2345678e6F, 1e8F, 1e8F, 1e8F, 2e8F, 1e9F, 1e10F, 3e12F};
  EXPECT_EQ(parse_costs(to_text(costs, "a host", 3), "a host", 3), costs);
}

TEST(Costs, OfADamagedOrForeignFileAreRefused) {
  const Costs costs = default_costs(Machine::cpu, 3, 2);
  const std::string text = to_text(costs, "here", 3);
  const auto refused = [](const std::string& damaged) {
    return error_of([&] { parse_costs(damaged, "here", 3); });
  };
  EXPECT_EQ(refused(text), "no error");
  EXPECT_THAT(refused(to_text(costs, "there", 3)),
              HasSubstr("line 2 is 'host there', not 'host here'"));
  EXPECT_THAT(refused(to_text(costs, "here", 4)), HasSubstr("line 3 is 'ranks 4', not 'ranks 3'"));
  std::string other = text;
  other.replace(other.find("costs 1"), 7, "costs 2");
  EXPECT_THAT(refused(other), HasSubstr("line 1 is 'treering costs 2', not 'treering costs 1'"));
  EXPECT_THAT(refused(text + "more"), HasSubstr("goes on after its end"));
  EXPECT_THAT(refused("\x7f"
                      "ELF\n"),
              HasSubstr("line 1"));
  for (std::size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(refused(text.substr(0, length)), "no error") << length;
  const std::size_t number = text.find("direct ") + 7;
  for (const char* const wrong : {"nan ", "-1 ", "inf ", "x", "1e13 ", ""}) {
    std::string damaged = text;
    damaged.replace(number, damaged.find(' ', number) + 1 - number, wrong);
    EXPECT_THAT(refused(damaged), HasSubstr("line 5")) << wrong;
  }
}

// ---- the cheapest ----

TEST(Choice, TakesTheCheapestAtEachSize) {
  const Costs costs = costs_of({
      {{Collective::all_reduce, one_shot, Path::staged}, line(100, 4)},
      {{Collective::all_reduce, two_shot, Path::staged}, line(500, 2)},
      {{Collective::all_reduce, two_shot, Path::direct}, line(150, 1)},
      {{Collective::all_reduce, one_shot, Path::direct}, line(140, 2)},
      {{Collective::all_reduce, ring, Path::staged}, line(90'000, 0.5F)},
  });
  const auto algorithm = [&](Situation s) { return choose(s, costs).algorithm; };
  EXPECT_EQ(algorithm(situation(199)), one_shot);  // 100 + 4 × 199 = 896 < 500 + 2 × 199 = 898
  EXPECT_EQ(algorithm(situation(201)), two_shot);
  EXPECT_EQ(algorithm(situation(32 << 10)), two_shot);
  EXPECT_EQ(algorithm(situation(1 << 20)), ring);
  Situation s = situation(1 << 20);
  s.registered = true;  // a ring is staged all the same
  EXPECT_EQ(algorithm(s), ring);
  s.bytes = 64;
  EXPECT_EQ(algorithm(s), two_shot);
  s.bytes = 8;
  EXPECT_EQ(algorithm(s), one_shot);
}

TEST(Choice, CountsOnBothKindsOfBuffersWhereNothingIsSaid) {
  const Costs costs = costs_of({
      {{Collective::all_gather, direct, Path::staged}, line(0, 4)},
      {{Collective::all_gather, direct, Path::direct}, line(0, 1)},
      {{Collective::all_gather, ring, Path::staged}, line(1000, 2.25F)},
  });
  Situation s = situation(2000, Collective::all_gather);  // staged 8000, direct 2000; a ring 5500
  EXPECT_EQ(choose(s, costs).algorithm, ring);
  s.registered = true;
  EXPECT_EQ(choose(s, costs).algorithm, direct);
  s.registered = std::nullopt;  // 5000
  EXPECT_EQ(choose(s, costs).algorithm, direct);
  s.bytes = 8000;  // 20'000; 19'000
  EXPECT_EQ(choose(s, costs).algorithm, ring);
}

TEST(Choice, IsAmongTheDeterministicOnes) {
  const Costs costs = costs_of({
      {{Collective::reduce, tree, Path::staged}, line(1, 1)},
      {{Collective::reduce, direct, Path::staged}, line(1000, 10)},
      {{Collective::broadcast, tree, Path::staged}, line(1, 1)},
  });
  Situation s = situation(4096, Collective::reduce);
  EXPECT_EQ(choose(s, costs).algorithm, tree);
  s.deterministic = true;
  EXPECT_EQ(choose(s, costs).algorithm, direct);
  EXPECT_THAT(error_of([&] { choose(s, costs, {.algorithm = ring}); }),
              AllOf(HasSubstr("unsupported"), HasSubstr("there are: direct")));
  s.collective = Collective::broadcast;  // adds nothing
  EXPECT_EQ(choose(s, costs).algorithm, tree);
}

TEST(Choice, OfWiresGoesByCost) {
  const Costs costs = costs_of({
      {{Collective::all_to_all, direct, Path::ll}, line(50, 2)},
      {{Collective::all_to_all, direct, Path::staged}, line(250, 1)},
  });
  EXPECT_EQ(choose(situation(100, Collective::all_to_all), costs).wire, WireType::ll);
  EXPECT_EQ(choose(situation(300, Collective::all_to_all), costs).wire, WireType::simple);
  // Others may move more.
  EXPECT_EQ(choose(situation(100, Collective::all_to_all_v), costs).wire, WireType::simple);
  EXPECT_EQ(choose(situation(0, Collective::barrier), costs).wire, WireType::simple);
  EXPECT_EQ(choose(situation(0, Collective::barrier), costs).algorithm, dissemination);
}

TEST(Choice, OfTheRestGoesByTheConstants) {
  Costs costs = costs_of({});
  costs.block_bytes = 1000;
  costs.chunk_bytes = 3000;
  costs.streaming_bytes = 5000;
  costs.slot_streaming_bytes = 7000;
  const auto choice = [&](std::size_t bytes) { return choose(situation(bytes), costs); };
  EXPECT_EQ(choice(999).blocks, 1);
  EXPECT_EQ(choice(3000).blocks, 3);
  EXPECT_EQ(choice(1 << 20).blocks, 8);
  EXPECT_EQ(choice(8).chunk, 704U);  // 750 elements in whole lines
  EXPECT_FALSE(choice(4999).streaming);
  EXPECT_TRUE(choice(5000).streaming);
  EXPECT_FALSE(choice(6999).streaming_slots);
  EXPECT_TRUE(choice(7000).streaming_slots);
  costs.chunk_bytes = 1;
  EXPECT_EQ(choice(8).chunk, 1U);
  costs.chunk_bytes = 1 << 30;
  EXPECT_EQ(choice(8).chunk, (256U << 10) / 4);
}

TEST(Choice, BuiltInIsLlForShortCallsOnGpusOnly) {
  const Costs cpu = default_costs(Machine::cpu, ranks, 8),
              gpu = default_costs(Machine::gpu, ranks, 8);
  EXPECT_EQ(choose(situation(1024), cpu).wire, WireType::simple);
  EXPECT_EQ(choose(situation(1024), gpu).wire, WireType::ll);
  EXPECT_EQ(choose(situation(1 << 20), gpu).wire, WireType::simple);
  EXPECT_EQ(choose(situation(1024), cpu, {.wire = WireType::ll}).chunk, 16U * 1024 / 4);
  EXPECT_EQ(choose(situation(1024), gpu, {.wire = WireType::simple}).wire, WireType::simple);
}

TEST(Choice, OfARankAloneIsToCopy) {
  Situation s = situation(1 << 20);
  s.size = 1;
  const Costs costs = default_costs(Machine::cpu, 1, 2);
  EXPECT_EQ(choose(s, costs, {.algorithm = ring}).algorithm, one_shot);
  s.collective = Collective::broadcast;
  EXPECT_EQ(choose(s, costs).algorithm, direct);
}

// ---- what is forced ----

TEST(ChoiceRules, HoldInTheirRanges) {
  const auto rules = ChoiceRules::parse(
      "all_reduce:0-64K=one_shot,64K-1M=two_shot/chunk32K/streaming_slots,2M-=ring/ll;"
      "broadcast:tree;all_gather_v:cached/simple");
  const auto at = [&](std::size_t bytes) { return rules.find(Collective::all_reduce, bytes); };
  EXPECT_EQ(at(0).algorithm, one_shot);
  EXPECT_EQ(at((64 << 10) - 1).algorithm, one_shot);
  EXPECT_EQ(at(64 << 10).algorithm, two_shot);
  EXPECT_EQ(at(64 << 10).chunk, 32U << 10);
  EXPECT_EQ(at(64 << 10).streaming_slots, true);
  EXPECT_EQ(at(64 << 10).streaming, std::nullopt);
  EXPECT_EQ(at(64 << 10).wire, std::nullopt);
  EXPECT_EQ(at(1 << 20).algorithm, std::nullopt);
  EXPECT_EQ(at(std::size_t{1} << 40).algorithm, ring);
  EXPECT_EQ(at(std::size_t{1} << 40).wire, WireType::ll);
  EXPECT_EQ(rules.find(Collective::broadcast, 0).algorithm, tree);
  EXPECT_EQ(rules.find(Collective::reduce, 0).algorithm, std::nullopt);
  EXPECT_EQ(rules.find(Collective::all_gather, 7).streaming, false);
  EXPECT_EQ(rules.find(Collective::all_gather_v, 7).wire, WireType::simple);
  EXPECT_EQ(ChoiceRules::parse("").find(Collective::reduce, 0).algorithm, std::nullopt);
}

TEST(ChoiceRules, NameThePlaceThatIsWrong) {
  const std::pair<const char*, std::vector<const char*>> bad[] = {
      {"all_reduce", {"'all_reduce' at letter 1", "':'"}},
      {"all_redcue:ring", {"'all_redcue' at letter 1", "all_reduce, reduce_scatter"}},
      {"all_reduce:", {"'' at letter 12", "two_shot, one_shot, ring, tree"}},
      {"all_reduce:0-64K=direct",
       {"'direct' at letter 18", "two_shot, one_shot, ring, tree, simple, ll"}},
      {"broadcast:tree;all_reduce:star", {"'star' at letter 27", "one_shot"}},
      {"all_reduce:ring/quick", {"'quick' at letter 17", "cached_slots"}},
      {"all_reduce:64K=ring", {"'64K' at letter 12", "0-64K"}},
      {"all_reduce:x-64K=ring", {"'x' at letter 12"}},
      {"all_reduce:0-64X=ring", {"'64X' at letter 14"}},
      {"all_reduce:64K-64K=ring", {"'64K-64K' at letter 12", "empty"}},
      {"all_reduce:chunk0", {"'chunk0' at letter 12", "at least 1"}},
      {"all_reduce:chunkX", {"'X' at letter 17"}},
      {"barrier:ll", {"'ll' at letter 9", "dissemination, simple, streaming"}},
  };
  for (const auto& [text, parts] : bad) {
    const std::string error = error_of([&] { ChoiceRules::parse(text); });
    EXPECT_THAT(error, HasSubstr("invalid_argument")) << text;
    for (const char* const part : parts) EXPECT_THAT(error, HasSubstr(part)) << text;
  }
}

TEST(ChoiceRules, LeaveTheRestToOthers) {
  const Forced first{.algorithm = ring, .streaming = false};
  const Forced both = first.or_else({.algorithm = tree, .wire = WireType::ll, .streaming = true});
  EXPECT_EQ(both.algorithm, ring);
  EXPECT_EQ(both.wire, WireType::ll);
  EXPECT_EQ(both.streaming, false);
  EXPECT_EQ(both.chunk, std::nullopt);
  const Choice choice = choose(situation(8), costs_of({}), both);
  EXPECT_EQ(choice.algorithm, ring);
  EXPECT_EQ(choice.wire, WireType::ll);
}

}  // namespace
}  // namespace treering
