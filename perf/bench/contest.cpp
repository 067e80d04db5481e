#include "perf/bench/contest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>

#include "kernels/exec/device.hpp"
#include "perf/call.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;

/// A turn lasts about so long, so that the clock does not count.
constexpr double turn_seconds = 50e-6;
constexpr int most_calls = 200;
/// A call that lasts so long is not made twice to get warm.
constexpr double long_seconds = 1e-3;

std::size_t most_bytes(const std::vector<Match>& matches, bool registered) {
  std::size_t most = 0;
  for (const Match& match : matches)
    for (const Contender& one : match.contenders)
      if (one.registered == registered) most = std::max(most, match.what.bytes);
  return most;
}

}  // namespace

int rounds_for(std::size_t bytes) noexcept { return bytes <= 256 << 10 ? 20 : 10; }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double ratio(const Result& of, const Result& to, std::size_t first, std::size_t step) {
  std::vector<double> ratios;
  for (std::size_t i = first; i < of.seconds.size() && i < to.seconds.size(); i += step)
    ratios.push_back(of.seconds[i] / to.seconds[i]);
  return median(ratios);
}

Contest::Contest(const std::vector<Match>& matches, Communicator& comm, Control& control)
    : matches_(matches),
      comm_(comm),
      control_(control),
      registered_{{most_bytes(matches, true), true}, {most_bytes(matches, true), true}},
      plain_{{most_bytes(matches, false), false}, {most_bytes(matches, false), false}} {
  if (device().execution() != Execution::host)
    throw Error(ErrorCode::unsupported,
                "Choices are compared on the host only: set TREERING_DEVICE=host.");
}

void Contest::run(int pipe) {
  for (const Match& match : matches_) play(match, pipe);
}

void Contest::play(const Match& match, int pipe) {
  const std::size_t n = match.contenders.size();
  std::vector<std::vector<double>> seconds(n);
  std::vector<CallReport> reports(n);
  std::vector<int> calls(n);
  for (std::size_t i = 0; i < n; ++i) {
    double once = time(match.what, match.contenders[i], 1);  // makes its wires
    if (once < long_seconds) once = time(match.what, match.contenders[i], 2);
    calls[i] = std::clamp(static_cast<int>(turn_seconds / once), 1, most_calls);
    reports[i] = comm_.last_call();
  }
  for (int round = 0; round < match.rounds; ++round)
    for (std::size_t turn = 0; turn < n; ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % n;
      seconds[i].push_back(time(match.what, match.contenders[i], calls[i]));
    }
  for (std::size_t i = 0; i < n && comm_.rank() == 0; ++i) {
    Message message =
        Message::with_text(Message::Kind::row, fmt::format("{:.4g}", fmt::join(seconds[i], " ")));
    message.out_of_place.algorithm = reports[i].algorithm;
    message.out_of_place.wire = reports[i].wire;
    send(pipe, message);
  }
}

/// Seconds of one call on the slowest rank: the same number on all ranks.
double Contest::time(const Case& what, const Contender& contender, int calls) {
  const Pattern pattern = timed_pattern(what, comm_.size());
  const std::size_t size = size_of(what.type), bytes = input_elements(pattern, comm_.rank()) * size;
  const Buffers& memory = buffers(contender.registered);
  std::byte* const input = memory.input.region(bytes, 0).at(0);
  std::byte* const output =
      memory.output.region(output_elements(pattern, comm_.rank()) * size, 0).at(0);
  std::memset(input, ++fill_ & 0x3f, bytes);
  CallOptions how;
  how.algorithm = contender.algorithm;
  how.wire = contender.wire;
  how.choice = contender.choice;
  control_.barrier();
  control_.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) make_call(comm_, pattern, input, output, how);
  const double mine = std::chrono::duration<double>(Clock::now() - begin).count() / calls;
  return control_.combine(comm_.rank(), {.seconds = mine}).seconds;
}

Result Contest::result_of(const Message& message) {
  Result result{{}, message.out_of_place.algorithm, message.out_of_place.wire};
  std::istringstream text(message.text.data());
  for (double seconds = 0; text >> seconds;) result.seconds.push_back(seconds);
  return result;
}

}  // namespace treering::perf
