#include "perf/bench/rank.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "kernels/exec/device.hpp"
#include "perf/call.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::size_t parts_bytes(const Case& c, int ranks) {
  return 2 * c.count * static_cast<std::size_t>(ranks) * size_of(c.type);
}

std::size_t most_bytes(const std::vector<Case>& cases, int ranks) {
  std::size_t most = 0;
  // Uneven parts differ from check to check: they are up to twice as large as the count says.
  for (const Case& c : cases)
    most =
        std::max({most, c.bytes, c.collective == even(c.collective) ? 0 : parts_bytes(c, ranks)});
  return most;
}

/// An odd number of elements (of one to three), not the same on all ranks, nor for input and
/// output.
std::size_t odd_shift(DataType type, int number) {
  return static_cast<std::size_t>(1 + number % 3) * size_of(type);
}

}  // namespace

treering::Options communicator_options(const Options& options) {
  treering::Options how;
  if (options.all()) {
    how.algorithm = options.algorithm;
    how.wire = options.wire;
  }
  how.deterministic = options.deterministic;
  how.registered = options.registered;
  return how;
}

CallOptions call_options(const Options& options) {
  CallOptions how;
  if (!options.all()) {
    how.algorithm = options.algorithm;
    how.wire = options.wire;
  }
  return how;
}

/// One call's data and where it lies. In place, both regions are the same.
struct Rank::Placement {
  Pattern pattern;
  bool in_place;
  Region input, output;
  std::size_t input_offset, output_offset;  // bytes into the region

  const void* source() const { return input.at(input_offset); }
  void* target() const { return output.at(output_offset); }
};

Rank::Rank(const Options& options, const std::vector<Case>& cases, Communicator& comm,
           Control& control)
    : options_(options),
      cases_(cases),
      comm_(comm),
      control_(control),
      me_(comm.rank()),
      first_(most_bytes(cases, options.ranks), options.registered),
      second_(most_bytes(cases, options.ranks), options.registered) {
  how_ = call_options(options);
  if (device().execution() == Execution::cuda) how_.stream = &stream_.emplace();
}

void Rank::run(int pipe) {
  for (const Case& c : cases_) {
    Message row;
    row.kind = Message::Kind::row;
    row.out_of_place = measure(c, false);
    if (c.collective != Collective::barrier) row.in_place = measure(c, true);
    if (me_ == 0) send(pipe, row);
  }
}

Pattern Rank::fresh(const Case& c, bool in_place) {
  Pattern p = timed_pattern(c, options_.ranks);
  p.seed = ++seed_;
  p.symmetric = in_place;
  return p;
}

Rank::Placement Rank::place(const Pattern& p, bool in_place, std::size_t shift_in,
                            std::size_t shift_out) const {
  const std::size_t size = size_of(p.type);
  const std::size_t in = input_elements(p, me_) * size, out = output_elements(p, me_) * size;
  if (!in_place)
    return {p, false, first_.region(in, shift_in), second_.region(out, shift_out), 0, 0};
  const Region both = second_.region(std::max(in, out), shift_in);
  return {p, true, both, both, in_place_input(p, me_) * size, in_place_output(p, me_) * size};
}

void Rank::write_input(const Placement& at) const {
  at.input.write_input(at.pattern, me_, 0, input_elements(at.pattern, me_), at.input_offset);
}

void Rank::call(const Placement& at) {
  make_call(comm_, at.pattern, at.source(), at.target(), how_);
}

void Rank::finish() {
  if (stream_) stream_->synchronize();
}

Measurement Rank::measure(const Case& c, bool in_place) {
  const Placement at = place(timed_pattern(c, options_.ranks), in_place, 0, 0);
  write_input(at);
  Measurement m;
  m.measured = true;
  m.seconds = time(at);
  const CallReport report = comm_.last_call();
  m.algorithm = report.algorithm;
  m.wire = report.wire;
  m.direct = control_.combine(me_, {.direct = report.direct}).direct;
  check(c, in_place, m);
  return m;
}

double Rank::time(const Placement& at) {
  for (int i = 0; i < options_.warmups * options_.calls_per_iteration; ++i) call(at);
  finish();
  if (options_.rewrite) return time_rewritten(at);
  return time_iterations(at, options_.iterations);
}

/// Seconds of one call, on the slowest rank.
double Rank::time_iterations(const Placement& at, int iterations) {
  const int calls = iterations * options_.calls_per_iteration;
  control_.barrier();  // absorbs long waits, from which ranks wake up at different times;
  control_.barrier();  // the second lets them go together
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) call(at);
  finish();
  return control_.combine(me_, {.seconds = seconds_since(begin) / calls}).seconds;
}

/// The median over the iterations, since each is timed by itself and some meet an interruption.
double Rank::time_rewritten(const Placement& at) {
  std::vector<double> times(static_cast<std::size_t>(options_.iterations));
  for (double& time : times) {
    write_input(at);
    time = time_iterations(at, 1);
  }
  const auto middle = times.begin() + options_.iterations / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Checks the call as it was timed, and once more with buffers that are aligned to nothing but an
/// element.
void Rank::check(const Case& c, bool in_place, Measurement& m) {
  Share mine;
  for (int i = 0; i < options_.checks; ++i) {
    if (c.collective == Collective::barrier) {
      mine.wrong += check_barriers();
      continue;
    }
    check_call(place(fresh(c, in_place), in_place, 0, 0), mine);
    const std::size_t shift_in = odd_shift(c.type, me_), shift_out = odd_shift(c.type, me_ + 1);
    check_call(place(fresh(c, in_place), in_place, shift_in, shift_out), mine);
  }
  const Share all = control_.combine(me_, mine);
  m.wrong = all.wrong;
  m.out_of_bounds = all.out_of_bounds;
}

void Rank::check_call(const Placement& at, Share& mine) {
  const Pattern& p = at.pattern;
  at.output.poison();
  at.output.guard(me_);
  if (!at.in_place) at.input.guard(me_);
  write_input(at);
  call(at);
  finish();

  mine.wrong += at.output.wrong_output(p, me_, at.output_offset);
  mine.out_of_bounds += at.output.broken_guards(me_);
  if (!at.in_place) {
    mine.wrong += at.input.changed_input(p, me_, 0, input_elements(p, me_), 0);
    mine.out_of_bounds += at.input.broken_guards(me_);
  } else if (in_place_output(p, me_) + output_elements(p, me_) < input_elements(p, me_)) {
    // The other ranks' parts of the buffer are still input.
    const std::size_t size = size_of(p.type), before = in_place_output(p, me_),
                      after = before + output_elements(p, me_);
    mine.wrong += at.input.changed_input(p, me_, 0, before, 0);
    mine.wrong +=
        at.input.changed_input(p, me_, after, input_elements(p, me_) - after, after * size);
  }
}

/// Nobody may leave a barrier that somebody has not reached. The ranks take turns at being late.
std::uint64_t Rank::check_barriers() {
  constexpr int rounds = 100, yields = 20;
  std::uint64_t early = 0;
  for (int i = 0; i < rounds; ++i) {
    ++barriers_;
    if (i % options_.ranks == me_)
      for (int j = 0; j < yields; ++j) sched_yield();
    control_.come(me_, barriers_);
    comm_.barrier(how_);
    finish();
    early += control_.missing(barriers_) > 0;
  }
  return early;
}

}  // namespace treering::perf
