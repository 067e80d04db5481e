#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "collectives/access.hpp"
#include "collectives/arguments.hpp"
#include "collectives/launch_group.hpp"
#include "collectives/membership.hpp"
#include "collectives/state.hpp"
#include "collectives/stream.hpp"
#include "kernels/ops/scale.hpp"
#include "plan/choice.hpp"
#include "plan/neighbours.hpp"
#include "treering/treering.hpp"

namespace treering {
namespace {

/// Whether peers may read this rank's input and write into its output.
bool may_share(const Arguments& args) {
  // In place the output of an all-to-all is still what the others are to get.
  if (even(args.collective) == Collective::all_to_all && args.input == args.output) return false;
  return args.op != ReduceOp::premul_sum;  // else they would read what is not scaled yet
}

/// Size of the call, the same on all ranks, unless it is secret.
std::size_t bytes_to_plan_by(const Arguments& args, int size) {
  if (has_secret_sizes(args.collective)) return std::max(args.input_bytes, args.output_bytes);
  const bool wide = args.collective == Collective::reduce_scatter ||
                    args.collective == Collective::all_gather ||
                    args.collective == Collective::all_to_all ||
                    args.collective == Collective::gather || args.collective == Collective::scatter;
  return args.count * size_of(args.type) * (wide ? static_cast<std::size_t>(size) : 1);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const noexcept { return state_->seat->rank(); }
int Communicator::size() const noexcept { return state_->seat->size(); }
int Communicator::local_rank() const noexcept { return state_->seat->local_rank(); }
int Communicator::local_size() const noexcept { return state_->seat->local_size(); }

/// First counts what the call forces, then its text, then TREERING_CHOICE. What is meant for many collectives comes
/// last, and counts where it can.
Forced Communicator::State::forced(Collective collective, std::size_t bytes,
                                   const CallOptions& how) const {
  Forced preferred{.algorithm = seat->algorithm(), .wire = seat->wire()};
  const auto all = algorithms_of(collective);
  if (preferred.algorithm && std::ranges::find(all, *preferred.algorithm) == all.end())
    preferred.algorithm = std::nullopt;
  if (preferred.wire && !has_wire(collective, *preferred.wire)) preferred.wire = std::nullopt;
  Forced forced{.algorithm = how.algorithm, .wire = how.wire};
  if (!how.choice.empty())
    forced = forced.or_else(ChoiceRules::parse(how.choice).find(collective, bytes));
  return forced.or_else(seat->rules().find(collective, bytes)).or_else(preferred);
}

/// Programs repeat their calls, and to choose takes a third of the time of the shortest ones.
Choice Communicator::State::choice_of(const Arguments& args, const CallOptions& how) {
  const Asked asked{.collective = args.collective,
                    .bytes = bytes_to_plan_by(args, seat->size()),
                    .element_bytes = size_of(args.type),
                    .scaled = args.op == ReduceOp::premul_sum,
                    .algorithm = how.algorithm,
                    .wire = how.wire};
  const bool kept = how.choice.empty();
  if (kept && chosen && chosen->asked == asked) return chosen->choice;
  const Situation situation{
      .collective = asked.collective,
      .bytes = asked.bytes,
      .element_bytes = asked.element_bytes,
      .size = seat->size(),
      .channels = seat->channels(),
      .all_channels = seat->all_channels() || has_secret_sizes(args.collective),
      .deterministic = seat->deterministic(),
      .registered = asked.scaled ? std::optional(false) : seat->registered(),
      .shape = seat->shape()};
  const Choice choice =
      choose(situation, seat->costs(), forced(asked.collective, asked.bytes, how));
  if (kept) chosen = {asked, choice};
  return choice;
}

/// How a call will be done; the parts are still missing.
Launch Communicator::State::plan(const Arguments& args, const CallOptions& how) {
  const Choice choice = choice_of(args, how);
  Launch launch{.view = seat->view(), .args = {}, .blocks = choice.blocks};
  launch.args.call = {.collective = args.collective,
                      .type = args.type,
                      .op = args.op,
                      .algorithm = choice.algorithm,
                      .root = static_cast<std::uint16_t>(args.root),
                      .wire = choice.wire,
                      .count = args.count,
                      .chunk = static_cast<std::uint32_t>(choice.chunk),
                      .splits = 0};
  launch.args.input = static_cast<const std::byte*>(args.input);
  launch.args.output = static_cast<std::byte*>(args.output);
  if (choice.wire == WireType::simple && may_share(args)) {
    launch.args.input_reference = seat->reference(args.input, args.input_bytes);
    launch.args.output_reference = seat->reference(args.output, args.output_bytes);
  }
  if (args.op == ReduceOp::premul_sum) launch.args.scale = scale_bits(args.type, how.scale);
  launch.args.streaming = choice.streaming;
  launch.args.streaming_slots = choice.streaming_slots;
  launch.args.unregistered = seat->registered() == false;
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

/// Gives the kernels the uneven parts, and the hash that shows whether all ranks have the same.
void Communicator::State::add_parts(const Arguments& args, Launch& launch) {
  const bool in = !args.input_parts.counts.empty(), out = !args.output_parts.counts.empty();
  if (!in && !out) return;
  const PartTables::Table table = tables.next(*latest);
  if (in) {
    write_chunks(args.input_parts, table.input);
    launch.args.input_parts = table.input;
  }
  if (out) {
    write_chunks(args.output_parts, table.output);
    launch.args.output_parts = table.output;
  }
  if (!has_secret_sizes(args.collective))
    launch.args.call.splits = hash_of(in ? args.input_parts : args.output_parts);
}

void Communicator::State::call(Arguments args, const CallOptions& how) {
  check_arguments(args, seat->rank(), seat->size());
  const char* const text = name(args.collective);
  const std::lock_guard lock(mutex);
  Launch launch = refusing(text, seat->rank(), [&] { return plan(args, how); });
  guard->check();
  const Descriptor& planned = launch.args.call;
  provide(text, [&] {
    for_each_neighbour(planned.collective, planned.algorithm, seat->rank(), seat->size(),
                       planned.root, [&](int peer) { seat->back(peer, planned.wire); });
  });
  add_parts(args, launch);
  launch.args.hash = hash(launch.args.call);
  algorithm = launch.args.call.algorithm;
  wire = launch.args.call.wire;
  blocks = launch.blocks;
  how.stream != nullptr ? enqueue(launch, *how.stream) : run(launch);
}

void Communicator::all_reduce(const void* input, void* output, std::size_t count, DataType type,
                              ReduceOp op, const CallOptions& how) {
  state_->call({Collective::all_reduce, input, output, count, type, op}, how);
}

void Communicator::reduce_scatter(const void* input, void* output, std::size_t count, DataType type,
                                  ReduceOp op, const CallOptions& how) {
  state_->call({Collective::reduce_scatter, input, output, count, type, op}, how);
}

void Communicator::all_gather(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& how) {
  state_->call({Collective::all_gather, input, output, count, type}, how);
}

void Communicator::all_to_all(const void* input, void* output, std::size_t count, DataType type,
                              const CallOptions& how) {
  state_->call({Collective::all_to_all, input, output, count, type}, how);
}

void Communicator::reduce_scatter_v(const void* input, void* output, const Parts& parts,
                                    DataType type, ReduceOp op, const CallOptions& how) {
  state_->call({.collective = Collective::reduce_scatter_v,
                .input = input,
                .output = output,
                .count = sum_of(parts),
                .type = type,
                .op = op,
                .input_parts = parts},
               how);
}

void Communicator::all_gather_v(const void* input, void* output, const Parts& parts, DataType type,
                                const CallOptions& how) {
  state_->call({.collective = Collective::all_gather_v,
                .input = input,
                .output = output,
                .count = sum_of(parts),
                .type = type,
                .output_parts = parts},
               how);
}

void Communicator::all_to_all_v(const void* input, const Parts& sent, void* output,
                                const Parts& received, DataType type, const CallOptions& how) {
  state_->call({.collective = Collective::all_to_all_v,
                .input = input,
                .output = output,
                .count = 0,
                .type = type,
                .input_parts = sent,
                .output_parts = received},
               how);
}

void Communicator::broadcast(const void* input, void* output, std::size_t count, DataType type,
                             int root, const CallOptions& how) {
  state_->call({Collective::broadcast, input, output, count, type, ReduceOp::sum, root}, how);
}

void Communicator::reduce(const void* input, void* output, std::size_t count, DataType type,
                          ReduceOp op, int root, const CallOptions& how) {
  state_->call({Collective::reduce, input, output, count, type, op, root}, how);
}

void Communicator::gather(const void* input, void* output, std::size_t count, DataType type,
                          int root, const CallOptions& how) {
  state_->call({Collective::gather, input, output, count, type, ReduceOp::sum, root}, how);
}

void Communicator::scatter(const void* input, void* output, std::size_t count, DataType type,
                           int root, const CallOptions& how) {
  state_->call({Collective::scatter, input, output, count, type, ReduceOp::sum, root}, how);
}

void Communicator::barrier(const CallOptions& how) {
  state_->call({Collective::barrier, nullptr, nullptr, 0, DataType::u8}, how);
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
  return {state_->algorithm, state_->wire, direct, state_->blocks};
}

Membership& membership(Communicator& communicator) { return *communicator.state_->seat; }

}  // namespace treering
