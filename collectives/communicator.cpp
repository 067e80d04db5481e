#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "collectives/access.hpp"
#include "collectives/arguments.hpp"
#include "collectives/launch_group.hpp"
#include "collectives/membership.hpp"
#include "collectives/state.hpp"
#include "collectives/stream.hpp"
#include "kernels/exec/host/arena.hpp"
#include "kernels/ops/fold.hpp"
#include "plan/choice.hpp"
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
  if (options.algorithm && static_cast<int>(*options.algorithm) >= algorithms)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`options.algorithm` = {} is not an Algorithm",
                            static_cast<int>(*options.algorithm)),
                {rank});
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

void connect(Membership& seat, Exchange& exchange) {
  const std::vector<Facts> facts = gather_facts(exchange, seat.facts());
  const bool one_process = std::ranges::all_of(
      facts, [&](const Facts& f) { return same_process(f.process, facts[0].process); });
  std::vector<UniqueFd> arenas;
  if (!one_process) {
    const bool first = first_of_process(facts, seat.rank());
    arenas = exchange.all_gather_descriptors(first ? process_arena().descriptor() : -1);
  }
  seat.connect(facts, std::move(arenas));
}

}  // namespace

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

Communicator Communicator::create(const UniqueId& id, int world_size, int rank,
                                  const Options& options) {
  check_place(world_size, rank, options);
  Device& machine = device();
  Exchange exchange = Exchange::join(Invitation::from_bytes(id.bytes()), world_size, rank,
                                     settings().start_timeout);
  try {
    auto seat = std::make_shared<Membership>(machine, rank, world_size, options);
    connect(*seat, exchange);
    Communicator rank_of_it(std::make_shared<State>(std::move(seat)));
    exchange.barrier();  // on a GPU, what is made after this may wait for a peer's kernel
    rank_of_it.state_->seat->start();
    return rank_of_it;
  } catch (const Error& error) {
    exchange.fail(error);
    throw;
  }
}

std::vector<Communicator> Communicator::create_local(int world_size, const Options& options) {
  check_place(world_size, 0, options);
  std::vector<std::shared_ptr<Membership>> seats;
  std::vector<Facts> facts;
  for (int rank = 0; rank < world_size; ++rank) {
    seats.push_back(std::make_shared<Membership>(device(), rank, world_size, options));
    facts.push_back(seats.back()->facts());
  }
  std::vector<Communicator> all;
  for (auto& seat : seats) {
    seat->connect(facts, {});
    all.push_back(Communicator(std::make_shared<State>(seat)));
  }
  for (auto& seat : seats) seat->start();
  return all;
}

int Communicator::rank() const noexcept { return state_->seat->rank(); }
int Communicator::size() const noexcept { return state_->seat->size(); }

Launch Communicator::State::plan(const Arguments& args, const CallOptions& how) const {
  std::optional<Algorithm> forced = how.algorithm;
  if (!forced && seat->algorithm()) {  // a communicator's preference counts where it can
    const auto valid = algorithms_of(args.collective);
    if (std::ranges::find(valid, *seat->algorithm()) != valid.end()) forced = seat->algorithm();
  }
  const Choice choice = choose({.collective = args.collective,
                                .bytes = std::max(args.input_bytes, args.output_bytes),
                                .element_bytes = size_of(args.type),
                                .size = seat->size(),
                                .channels = seat->channels(),
                                .all_channels = seat->all_channels(),
                                .shape = seat->shape()},
                               forced);
  Launch launch{.view = seat->view(), .args = {}, .blocks = choice.blocks};
  launch.args.call = {.collective = args.collective,
                      .type = args.type,
                      .op = args.op,
                      .algorithm = choice.algorithm,
                      .root = 0,
                      .count = args.count,
                      .chunk = choice.chunk};
  launch.args.input = static_cast<const std::byte*>(args.input);
  launch.args.output = static_cast<std::byte*>(args.output);
  // In an all-to-all in place nobody may write into a peer's output: it is still that peer's input.
  const bool may_share = args.collective != Collective::all_to_all || args.input != args.output;
  if (may_share) {
    launch.args.input_reference = seat->reference(args.input, args.input_bytes);
    launch.args.output_reference = seat->reference(args.output, args.output_bytes);
  }
  launch.args.hash = hash(launch.args.call);
  launch.args.streaming = choice.streaming;
  return launch;
}

void Communicator::State::enqueue(const Launch& launch, Stream& stream,
                                  std::shared_ptr<Parcel> parcel) {
  stream.state_->note(guard, parcel);
  if (LaunchGroup::State* group = LaunchGroup::State::current())
    return group->add({shared_from_this(), stream.state_->queue, launch, std::move(parcel)});
  Queue& queue = *stream.state_->queue;
  follow_latest(queue, launch);
  queue.launch(launch);
  record(queue, launch, std::move(parcel));
}

/// What comes next in a queue waits for the latest call in another: both use the same wires.
void Communicator::State::follow_latest(Queue& queue, const Launch& launch) {
  if (!is_ordered(launch)) return;
  if (latest_queue != nullptr && latest_queue != &queue) queue.wait(*latest);
  latest_queue = &queue;
}

void Communicator::State::record(Queue& queue, const Launch& launch,
                                 std::shared_ptr<Parcel> parcel) {
  if (is_ordered(launch)) queue.record(*latest);
  if (parcel == nullptr) return;
  queue.record(parcel->event());
  post_room.sent(std::move(parcel));
}

void Communicator::State::run(const Launch& launch) {
  if (LaunchGroup::State::current() != nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {}: a call in a LaunchGroup needs a stream", seat->rank()),
                {seat->rank()});
  if (is_ordered(launch)) {
    if (latest_queue != nullptr) latest->synchronize();
    latest_queue = nullptr;
  }
  seat->device().run(launch);
  guard->check();
}

void Communicator::State::call(const Arguments& args, const CallOptions& how) {
  const Launch launch = plan(args, how);
  const std::lock_guard lock(mutex);
  guard->check();
  try {
    seat->back(launch.args.call.algorithm == Algorithm::ring ? Wiring::ring : Wiring::mesh);
  } catch (const Error&) {
    guard->abort();  // the others will wait for this rank
    throw;
  }
  algorithm = launch.args.call.algorithm;
  blocks = launch.blocks;
  how.stream != nullptr ? enqueue(launch, *how.stream) : run(launch);
}

void Communicator::all_reduce(const void* input, void* output, std::size_t count, DataType type,
                              ReduceOp op, const CallOptions& how) {
  state_->call(
      check_arguments(Collective::all_reduce, input, output, count, type, op, rank(), size()), how);
}

void Communicator::reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                                  ReduceOp op, const CallOptions& how) {
  state_->call(
      check_arguments(Collective::reduce_scatter, input, output, count, type, op, rank(), size()),
      how);
}

void Communicator::all_gather(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& how) {
  state_->call(check_arguments(Collective::all_gather, input, output, count, type, ReduceOp::sum,
                               rank(), size()),
               how);
}

void Communicator::all_to_all(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& how) {
  state_->call(check_arguments(Collective::all_to_all, input, output, count, type, ReduceOp::sum,
                               rank(), size()),
               how);
}

void Communicator::barrier(const CallOptions& how) {
  state_->call(check_arguments(Collective::barrier, nullptr, nullptr, 0, DataType::u8,
                               ReduceOp::sum, rank(), size()),
               how);
}

bool Communicator::register_memory(void* pointer, std::size_t bytes) {
  return state_->seat->register_memory(pointer, bytes);
}

void Communicator::deregister(void* pointer) { state_->seat->deregister(pointer); }

void Communicator::abort() noexcept { state_->guard->abort(); }
void Communicator::check() const { state_->guard->check(); }

CallReport Communicator::last_call() const noexcept {
  const std::lock_guard lock(state_->mutex);
  const auto verdicts =
      state_->seat->verdicts().first(static_cast<std::size_t>(std::max(state_->blocks, 0)));
  const bool direct = !verdicts.empty() && std::ranges::all_of(verdicts, [](const Verdict& v) {
    return load_relaxed(v.direct) != 0;
  });
  return {state_->algorithm, direct, state_->blocks};
}

Membership& membership(Communicator& communicator) { return *communicator.state_->seat; }

}  // namespace treering
