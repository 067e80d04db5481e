// Groups of a communicator's ranks. A group is a communicator of its own, whose unique id every
// member derives alone, from the parent's id, the members, and how many splits there were, or how many
// subsets of these members.
// So ranks meet only in the group itself, and for split() in one all-gather of the colors before:
//
//     rank    0      1      2      3
//     color   7      8      7     -1          groups:  color 7: ranks 2, 0 (by key)
//     key     1      0      0      0                   color 8: rank 1

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/rank_list.hpp"
#include "base/settings.hpp"
#include "collectives/state.hpp"
#include "transport/rendezvous/deadline.hpp"

namespace treering {
namespace {

/// The members of each color, in their order. A Wish has a color and a key.
template <class Wish>
std::map<int, std::vector<int>> members_by_color(const std::vector<Wish>& wishes) {
  std::map<int, std::vector<int>> members;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank)
    if (wishes[rank].color >= 0) members[wishes[rank].color].push_back(static_cast<int>(rank));
  for (auto& [color, ranks] : members)
    std::ranges::stable_sort(ranks, {},
                             [&](int r) { return wishes[static_cast<std::size_t>(r)].key; });
  return members;
}

/// `missing`: members, by their place among them.
Error not_all_came(const std::vector<int>& members, std::vector<int> missing, int rank) {
  for (int& member : missing) member = members[static_cast<std::size_t>(member)];
  return Error(ErrorCode::timeout,
               fmt::format("the group of ranks {} on rank {}: waited {} for {}; all members must "
                           "make it, by split or by subset with the same list in the same order",
                           fmt::join(members, ", "), rank, in_words(settings().start_timeout),
                           rank_list(missing)),
               missing);
}

void check_subset(std::span<const int> ranks, int rank, int size) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("subset on rank {}: {}", rank, why),
                {rank});
  };
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] < 0 || ranks[i] >= size)
      refuse(fmt::format("`ranks[{}]` = {}, but ranks go from 0 to {}", i, ranks[i], size - 1));
    const auto first = std::ranges::find(ranks, ranks[i]) - ranks.begin();
    if (first != static_cast<std::ptrdiff_t>(i))
      refuse(fmt::format("`ranks[{}]` and `ranks[{}]` are both {}; pass every member once", first,
                         i, ranks[i]));
  }
  if (std::ranges::find(ranks, rank) == ranks.end())
    refuse(fmt::format("this rank is not among `ranks` ({}); only members call subset",
                       fmt::join(ranks, ", ")));
}

}  // namespace

Communicator::State::Series& Communicator::State::series_of(const std::vector<int>& ranks) {
  const std::lock_guard lock(groups_mutex);
  return groups[ranks];
}

Communicator::Origin Communicator::State::group_of(const std::vector<int>& ranks,
                                                   const std::string& words) const {
  Origin group{UniqueId::derive(fmt::format("{}, {} of ranks {}", origin.id.text(), words,
                                            fmt::join(ranks, ", "))),
               {},
               origin.options};
  for (const int r : ranks)
    group.global_ranks.push_back(origin.global_ranks[static_cast<std::size_t>(r)]);
  return group;
}

int Communicator::global_rank() const noexcept {
  return state_->origin.global_ranks[static_cast<std::size_t>(rank())];
}

int Communicator::global_rank(int rank_here) const {
  if (rank_here < 0 || rank_here >= size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("global_rank on rank {}: `rank_here` = {}, but ranks go from 0 to {}",
                            rank(), rank_here, size() - 1),
                {rank()});
  return state_->origin.global_ranks[static_cast<std::size_t>(rank_here)];
}

Communicator Communicator::subset(std::span<const int> ranks) const {
  check_subset(ranks, rank(), size());
  check();
  const std::vector<int> members(ranks.begin(), ranks.end());
  State::Series& series = state_->series_of(members);
  const std::lock_guard turn(series.turn);
  Communicator group = state_->join_group(members, fmt::format("group {}", series.made.load()));
  ++series.made;
  return group;
}

Communicator Communicator::State::join_group(const std::vector<int>& members,
                                             const std::string& words) const try {
  const auto place = std::ranges::find(members, seat->rank()) - members.begin();
  return join(seat->device(), group_of(members, words), static_cast<int>(place),
              [this] { guard->check(); });  // whoever will not come since the parent is broken
} catch (const Error& error) {
  if (error.code() != ErrorCode::timeout) throw;
  throw not_all_came(members, error.ranks(), seat->rank());
}

std::optional<Communicator> Communicator::split(int color, int key) const {
  const std::lock_guard turn(state_->splitting);
  const auto wishes = state_->gather_wishes({color, key});
  const int number = state_->splits++;  // the same on all ranks: their splits meet in the gathering
  if (color < 0) return std::nullopt;
  return state_->join_group(members_by_color(wishes)[color], fmt::format("split {}", number));
}

std::vector<Communicator::State::Wish> Communicator::State::gather_wishes(const Wish& mine) {
  std::vector<Wish> wishes(static_cast<std::size_t>(seat->size()));
  std::optional<Buffer> input, output;
  provide("split", [&] {
    input.emplace(sizeof mine);
    output.emplace(wishes.size() * sizeof mine);
  });
  Device& machine = seat->device();
  machine.copy_now(input->data(), &mine, sizeof mine);
  Communicator(shared_from_this())
      .all_gather(input->data(), output->data(), sizeof mine / sizeof(std::int32_t), DataType::i32);
  machine.copy_now(wishes.data(), output->data(), output->bytes());
  return wishes;
}

std::vector<std::optional<Communicator>> Communicator::split_local(std::span<Communicator> ranks,
                                                                   std::span<const int> colors,
                                                                   std::span<const int> keys) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, "split_local: " + why);
  };
  const std::size_t n = ranks.size();
  if (colors.size() != n || keys.size() != n)
    refuse(fmt::format("{} ranks, but {} colors and {} keys; pass one of each for every rank", n,
                       colors.size(), keys.size()));
  std::vector<State::Wish> wishes;
  for (std::size_t r = 0; r < n; ++r) {
    const Communicator& one = ranks[r];
    if (one.state_->origin.id.bytes() != ranks[0].state_->origin.id.bytes())
      refuse(fmt::format("`ranks[{}]` is of another communicator than `ranks[0]`", r));
    if (one.rank() != static_cast<int>(r) || one.size() != static_cast<int>(n))
      refuse(
          fmt::format("`ranks[{}]` is rank {} of {}; pass all ranks of one communicator, in "
                      "order",
                      r, one.rank(), one.size()));
    one.check();
    wishes.push_back({colors[r], keys[r]});
  }
  std::vector<std::optional<Communicator>> groups(n);
  for (const auto& [color, members] : members_by_color(wishes)) {
    const auto state = [&](int r) { return ranks[static_cast<std::size_t>(r)].state_; };
    State::Series& first = state(members[0])->series_of(members);
    const std::lock_guard turn(first.turn);
    std::vector<Communicator> group = join_local(
        state(members[0])->group_of(members, fmt::format("group {}", first.made.load())));
    for (std::size_t i = 0; i < members.size(); ++i) {
      groups[static_cast<std::size_t>(members[i])] = std::move(group[i]);
      ++state(members[i])->series_of(members).made;
    }
  }
  return groups;
}

}  // namespace treering
