#include "tests/ranks/letters.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace treering::test {
namespace {

Guarded memory_of(const Letter& letter) {
  const std::size_t element = size_of(letter.type);
  return Guarded(letter.count * element, letter.registered, letter.offset * element);
}

template <class T>
void shuffle(std::vector<T>& all, std::mt19937_64& random) {
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
}

}  // namespace

std::string Letter::text() const {
  return fmt::format("{} × {} from rank {}{} to rank {}, tag {}, {}, offset {}", name(type), count,
                     from, from_any ? " (as from any)" : "", to, tag,
                     registered ? "registered" : "private", offset);
}

Correspondence::Correspondence(std::vector<Letter> letters, int rank, std::uint64_t seed)
    : letters_(std::move(letters)), rank_(rank), seed_(seed) {
  for (std::size_t i = 0; i < letters_.size(); ++i) {
    const Letter& letter = letters_[i];
    for (const bool sends : {true, false}) {
      if ((sends ? letter.from : letter.to) != rank) continue;
      sides_.push_back({i, sends, std::make_unique<Guarded>(memory_of(letter)), {}});
      if (sends) fill_input(pattern(i), letter.from, 0, letter.count, sides_.back().memory->data());
    }
  }
}

Pattern Correspondence::pattern(std::size_t letter) const {
  const Letter& l = letters_[letter];
  return {Collective::all_gather,    l.type, ReduceOp::sum, l.from + 1, l.count,
          seed_ * 1'000'003 + letter};
}

Transfer Correspondence::transfer(Side& side) const {
  const Letter& l = letters_[side.letter];
  return side.sends ? Transfer::send(side.memory->data(), l.count, l.type, l.to, l.tag)
                    : Transfer::receive(side.memory->data(), l.count, l.type,
                                        l.from_any ? any_source : l.from, l.tag, &side.received);
}

std::vector<std::vector<Transfer>> Correspondence::schedule(std::uint64_t seed, bool alike_on_all) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(rank_)), common(seed);
  std::vector<std::vector<Transfer>> groups;
  for (std::size_t begin = 0, end = 0; begin < letters_.size(); begin = end) {
    end = begin + 1 + (alike_on_all ? common : random)() % 24;
    std::vector<Side*> order;
    for (Side& side : sides_)
      if (begin <= side.letter && side.letter < end) order.push_back(&side);
    shuffle(order, random);
    // Those that go the same way with the same tag keep their order.
    std::map<std::tuple<bool, int, int>, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Letter& l = letters_[order[i]->letter];
      alike[{order[i]->sends, order[i]->sends ? l.to : l.from, l.tag}].push_back(i);
    }
    for (const auto& [key, places] : alike) {
      std::vector<Side*> sorted;
      for (const std::size_t place : places) sorted.push_back(order[place]);
      std::ranges::sort(sorted, {}, [](const Side* side) { return side->letter; });
      for (std::size_t i = 0; i < places.size(); ++i) order[places[i]] = sorted[i];
    }
    auto& group = groups.emplace_back();
    for (Side* side : order) group.push_back(transfer(*side));
  }
  return groups;
}

std::string Correspondence::faults() {
  std::string text;
  for (Side& side : sides_) {
    const Letter& l = letters_[side.letter];
    std::string wrong;
    if (count_changed(pattern(side.letter), l.from, 0, l.count, side.memory->data()) != 0)
      wrong += side.sends ? " was changed by sending it;" : " arrived with wrong elements;";
    if (!side.memory->intact()) wrong += " bytes around the buffer were touched;";
    const Message& m = side.received;
    if (!side.sends && (m.source != l.from || m.tag != l.tag || m.count != l.count))
      wrong +=
          fmt::format(" reported as {} elements from rank {}, tag {};", m.count, m.source, m.tag);
    if (!wrong.empty()) text += fmt::format("rank {}, {}:{}\n", rank_, l.text(), wrong);
  }
  return text;
}

std::vector<Letter> random_letters(int size, std::size_t count, std::size_t longest,
                                   std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const auto rank = [&] { return static_cast<int>(below(static_cast<std::size_t>(size))); };
  const std::size_t lengths[] = {1, 40, longest / 20, longest / 20, longest};
  std::vector<Letter> letters;
  for (std::size_t i = 0; i < count; ++i) {
    Letter letter{.from = rank(), .to = rank(), .tag = static_cast<int>(below(3)), .count = 0};
    letter.type = std::array{DataType::u8, DataType::bf16, DataType::f32, DataType::i64}[below(4)];
    letter.count = below(lengths[below(5)] + 1);
    letter.registered = below(2) != 0;
    letter.offset = below(3);
    letter.from_any = below(4) == 0;
    if (letter.from_any) letter.tag = 100 + static_cast<int>(i);
    letters.push_back(letter);
  }
  return letters;
}

void check(Team& team, const std::vector<Letter>& letters, std::uint64_t seed) {
  std::vector<std::unique_ptr<Correspondence>> ranks;
  std::vector<std::vector<std::vector<Transfer>>> schedules;
  std::size_t rounds = 0;
  for (int r = 0; r < team.size(); ++r) {
    ranks.push_back(std::make_unique<Correspondence>(letters, r, seed));
    schedules.push_back(ranks.back()->schedule(seed, true));
    rounds = std::max(rounds, schedules.back().size());
  }
  for (std::size_t round = 0; round < rounds; ++round)
    team.launch([&](Communicator& comm, const CallOptions& how) {
      const auto& mine = schedules[static_cast<std::size_t>(comm.rank())];
      if (round < mine.size() && !mine[round].empty()) comm.exchange(mine[round], how);
    });
  team.synchronize();
  for (const auto& rank : ranks) EXPECT_EQ(rank->faults(), "");
}

}  // namespace treering::test
