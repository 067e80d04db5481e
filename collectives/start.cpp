// The ways in which ranks become a communicator.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/settings.hpp"
#include "collectives/access.hpp"
#include "collectives/costs_file.hpp"
#include "collectives/state.hpp"
#include "collectives/verify.hpp"
#include "kernels/exec/host/arena.hpp"
#include "transport/rendezvous/environment.hpp"
#include "transport/rendezvous/exchange.hpp"
#include "transport/rendezvous/invitation.hpp"
#include "treering/treering.hpp"

namespace treering {
namespace {

void check_place(int world_size, int rank, const Options& options) {
  const int most = device().most_ranks();
  if (world_size < 1 || world_size > most)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`world_size` = {}; a communicator on one machine has 1 to {} ranks",
                            world_size, most));
  if (rank < 0 || rank >= world_size)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`rank` = {}, but `world_size` is {}: ranks go from 0 to {}", rank,
                            world_size, world_size - 1),
                {rank});
  if (options.wire && static_cast<int>(*options.wire) >= wire_types)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("`options.wire` = {} is not a WireType", static_cast<int>(*options.wire)),
        {rank});
  if (options.algorithm && static_cast<int>(*options.algorithm) >= algorithms)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`options.algorithm` = {} is not an Algorithm",
                            static_cast<int>(*options.algorithm)),
                {rank});
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::span<const std::byte> bytes_of(const Facts& facts) {
  return std::as_bytes(std::span(&facts, 1));
}

std::vector<Facts> gather_facts(Exchange& exchange, const Facts& mine) {
  std::vector<Facts> facts;
  for (const std::vector<std::byte>& bytes : exchange.all_gather(bytes_of(mine))) {
    if (bytes.size() != sizeof(Facts))
      throw Error(ErrorCode::mismatch,
                  fmt::format("rank {} runs another version of Treering than rank 0", facts.size()),
                  {static_cast<int>(facts.size())});
    std::memcpy(&facts.emplace_back(), bytes.data(), sizeof(Facts));
  }
  return facts;
}

/// Whether a rank is the first of its process, which speaks for all of them.
bool first_of_process(std::span<const Facts> facts, int rank) {
  const ProcessIdentity& process = facts[static_cast<std::size_t>(rank)].process;
  const auto first =
      std::ranges::find_if(facts, [&](const Facts& f) { return same_process(f.process, process); });
  return first - facts.begin() == rank;
}

/// Rank 0's, so that all choose alike.
Costs agree_on_costs(Exchange& exchange, const Membership& seat) {
  Costs costs{};
  if (seat.rank() == 0) costs = find_costs(seat.device().execution(), seat.size());
  const auto mine = std::as_bytes(std::span(&costs, seat.rank() == 0 ? 1U : 0U));
  const auto all = exchange.all_gather(mine);
  std::memcpy(&costs, all[0].data(), sizeof costs);
  return costs;
}

void connect(Membership& seat, Exchange& exchange) {
  const std::vector<Facts> facts = gather_facts(exchange, seat.facts());
  const bool one_process = std::ranges::all_of(
      facts, [&](const Facts& f) { return same_process(f.process, facts[0].process); });
  std::vector<UniqueFd> arenas;
  if (!one_process) {
    const bool first = first_of_process(facts, seat.rank());
    arenas = exchange.all_gather_descriptors(first ? process_arena().descriptor() : -1);
  }
  seat.map(facts, std::move(arenas));
  if (!one_process) verify(seat, exchange);
  seat.use(agree_on_costs(exchange, seat));
  seat.connect(facts);
}

}  // namespace

Communicator Communicator::join(Device& machine, const Origin& origin, int rank,
                                const std::function<void()>& look) {
  Exchange exchange = Exchange::join(Invitation::from_bytes(origin.id.bytes()), origin.size(), rank,
                                     settings().start_timeout, look);
  try {
    auto seat = std::make_shared<Membership>(machine, rank, origin.size(), origin.options);
    connect(*seat, exchange);
    Communicator rank_of_it(std::make_shared<State>(std::move(seat), origin));
    exchange.barrier();  // on a GPU, what is made after this may wait for a peer's kernel
    rank_of_it.state_->seat->start();
    return rank_of_it;
  } catch (const Error& error) {
    exchange.fail(error);
    throw;
  }
}

std::vector<Communicator> Communicator::join_local(const Origin& origin) {
  std::vector<std::shared_ptr<Membership>> seats;
  std::vector<Facts> facts;
  for (int rank = 0; rank < origin.size(); ++rank) {
    seats.push_back(std::make_shared<Membership>(device(), rank, origin.size(), origin.options));
    facts.push_back(seats.back()->facts());
  }
  std::vector<Communicator> all;
  const Costs costs = find_costs(device().execution(), origin.size());
  for (auto& seat : seats) {
    seat->map(facts, {});
    seat->use(costs);
    seat->connect(facts);
    all.push_back(Communicator(std::make_shared<State>(seat, origin)));
  }
  for (auto& seat : seats) seat->start();
  return all;
}

Communicator Communicator::create(const UniqueId& id, int world_size, int rank,
                                  const Options& options) {
  check_place(world_size, rank, options);
  return join(device(), {id, all_ranks(world_size), options}, rank);
}

std::vector<Communicator> Communicator::create_local(int world_size, const Options& options) {
  check_place(world_size, 0, options);
  return join_local({UniqueId::create(), all_ranks(world_size), options});
}

Communicator join_on(Device& machine, const UniqueId& id, int size, int rank) {
  return Communicator::join(machine, {id, all_ranks(size), {}}, rank);
}

Place Place::from_environment() {
  LaunchedPlace found = find_place();
  return {found.rank,
          found.size,
          found.local_rank,
          found.local_size,
          UniqueId::derive(found.job),
          std::move(found.launcher)};
}

Communicator Communicator::create_from_environment(const Options& options) {
  static std::atomic<int> created = 0;
  const Place place = Place::from_environment();
  const UniqueId id =
      UniqueId::derive(fmt::format("{}, number {}", place.id.text(), created.load()));
  Communicator rank_of_it = create(id, place.size, place.rank, options);
  ++created;  // a start that failed may be tried again by all
  return rank_of_it;
}

}  // namespace treering
