#include "perf/gpu_check/library/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "perf/call.hpp"

namespace treering::gpu_check {
namespace {

/// What a call is told of the kernel that it is to use.
void choose(const Kernel& kernel, CallOptions& how) {
  how.algorithm = kernel.algorithm;
  how.wire = kernel.wire;
}

}  // namespace

std::string name(const Kernel& kernel) {
  return fmt::format("{}.{}{}", treering::name(kernel.collective), treering::name(kernel.algorithm),
                     kernel.wire == WireType::simple ? "" : ".ll");
}

std::string Case::text() const {
  return fmt::format("{} {} {} × {}, {} ranks, root {}, {}, {}, shift {}, seed {}",
                     kernel ? gpu_check::name(*kernel) : treering::name(pattern.collective),
                     treering::name(pattern.op), treering::name(pattern.type), pattern.count,
                     pattern.ranks, pattern.root, in_place ? "in place" : "out of place",
                     registered ? "registered" : "not registered", shift, pattern.seed);
}

RankMemory::RankMemory(std::size_t bytes)
    : registered_{{bytes, true}, {bytes, true}},
      plain_{{bytes, false}, {bytes, false}},
      input_(nullptr, 0),
      output_(nullptr, 0) {}

void RankMemory::prepare(const Case& one, int rank) {
  case_ = one;
  const Pattern& p = one.pattern;
  const std::size_t size = size_of(p.type);
  const std::size_t in = input_elements(p, rank) * size, out = output_elements(p, rank) * size;
  perf::Memory* const memory = one.registered ? registered_ : plain_;
  output_ = memory[0].region(one.in_place ? std::max(in, out) : out, one.shift);
  input_ = one.in_place ? output_ : memory[1].region(in, one.shift);
  output_offset_ = one.in_place ? in_place_output(p, rank) * size : 0;
  input_offset_ = one.in_place ? in_place_input(p, rank) * size : 0;
  output_.poison();
  output_.guard(rank);
  if (!one.in_place) input_.guard(rank);
  input_.write_input(p, rank, 0, input_elements(p, rank), input_offset_);
}

void RankMemory::call(Communicator& comm, const CallOptions& how) const {
  CallOptions chosen = how;
  if (case_.kernel) choose(*case_.kernel, chosen);
  make_call(comm, case_.pattern, input_.at(input_offset_), output_.at(output_offset_), chosen);
}

std::string RankMemory::faults(int rank) const {
  const Pattern& p = case_.pattern;
  std::string text;
  if (const auto wrong = output_.wrong_output(p, rank, output_offset_))
    text += fmt::format(" {} elements of the output are wrong;", wrong);
  if (!case_.in_place && input_.changed_input(p, rank, 0, input_elements(p, rank), 0) != 0)
    text += " the input was changed;";
  if (output_.broken_guards(rank) != 0 || (!case_.in_place && input_.broken_guards(rank) != 0))
    text += " bytes around a buffer were touched;";
  return text.empty() ? text : fmt::format("rank {}, {}:{}", rank, case_.text(), text);
}

Team::Team(int size, std::size_t bytes)
    : ranks_(Communicator::create_local(size)), streams_(static_cast<std::size_t>(size)) {
  for (int r = 0; r < size; ++r) memory_.emplace_back(bytes);
}

void Team::prepare(const Case& one) {
  for (int r = 0; r < size(); ++r) memory_[static_cast<std::size_t>(r)].prepare(one, r);
}

void Team::launch() {
  LaunchGroup group;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    memory_[r].call(ranks_[r], {.stream = &streams_[r]});
  group.launch();
}

void Team::call_by_threads() {
  std::vector<std::future<void>> threads;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    threads.push_back(std::async(std::launch::async, [this, r] {
      memory_[r].call(ranks_[r], {.stream = &streams_[r]});
      streams_[r].synchronize();
    }));
  for (auto& thread : threads) thread.wait();
  for (auto& thread : threads) thread.get();
}

void Team::synchronize() {
  for (Stream& stream : streams_) stream.synchronize();
}

std::string Team::faults() const {
  std::string text;
  for (int r = 0; r < static_cast<int>(memory_.size()) && text.empty(); ++r)
    text = memory_[static_cast<std::size_t>(r)].faults(r);
  return text;
}

std::string Team::check(const Case& one, Launching launching) {
  prepare(one);
  if (launching == Launching::threads) {
    call_by_threads();
  } else {
    launch();
    synchronize();
  }
  return faults();
}

}  // namespace treering::gpu_check
