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
#include "plan/choice.hpp"
#include "treering/treering.hpp"

namespace treering {
Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const noexcept { return state_->seat->rank(); }
int Communicator::size() const noexcept { return state_->seat->size(); }
int Communicator::local_rank() const noexcept { return state_->seat->local_rank(); }
int Communicator::local_size() const noexcept { return state_->seat->local_size(); }

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

void Communicator::State::enqueue(const Launch& launch, Stream& stream) {
  if (LaunchGroup::State* group = LaunchGroup::State::current()) {
    group->add(shared_from_this(), stream.state_->queue, launch);
  } else {
    Queue& queue = *stream.state_->queue;
    follow_latest(queue);
    queue.launch(launch);
    queue.record(*latest);
  }
  stream.state_->note(guard);
}

/// What comes next in a queue waits for the latest call in another: both use the same wires.
void Communicator::State::follow_latest(Queue& queue) {
  if (latest_queue != nullptr && latest_queue != &queue) queue.wait(*latest);
  latest_queue = &queue;
}

void Communicator::State::run(const Launch& launch) {
  if (LaunchGroup::State::current() != nullptr)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("rank {}: a call in a LaunchGroup needs a stream", seat->rank()),
                {seat->rank()});
  if (latest_queue != nullptr) latest->synchronize();
  latest_queue = nullptr;
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
