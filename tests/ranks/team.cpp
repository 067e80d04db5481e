#include "tests/ranks/team.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "perf/call.hpp"
#include "tests/ranks/guarded.hpp"

namespace treering::test {
namespace {

Guarded guarded(const Case& one) {
  const std::size_t element = size_of(one.pattern.type);
  return Guarded(most_elements(one.pattern) * element, one.registered, one.offset * element);
}

/// One rank's buffers, as large as any rank's; in place both are parts of one.
struct Buffers {
  Buffers(const Case& one, int rank) : output(guarded(one)) {
    const Pattern& p = one.pattern;
    if (!one.in_place) input.emplace(guarded(one));
    const std::size_t element = size_of(p.type);
    in = one.in_place ? output.data() + in_place_input(p, rank) * element : input->data();
    out = one.in_place ? output.data() + in_place_output(p, rank) * element : output.data();
    fill_input(p, rank, 0, input_elements(p, rank), in);
  }

  /// What is wrong after the call; empty if nothing is.
  std::string faults(const Case& one, int rank) {
    const Pattern& p = one.pattern;
    std::string text;
    if (const auto wrong = count_wrong(p, rank, 0, output_elements(p, rank), out))
      text += fmt::format(" {} elements of the output are wrong;", wrong);
    if (!input_kept(p, rank)) text += " the input was changed;";
    if (!output.intact() || (input && !input->intact()))
      text += " bytes around a buffer were touched;";
    if (input && output_elements(p, rank) == 0 && !output.untouched())
      text += " an output that is not this rank's was written;";
    return text.empty() ? text : fmt::format("rank {}, {}:{}", rank, one.text(), text);
  }

  /// In place what lies beside the output must be kept.
  bool input_kept(const Pattern& p, int rank) const {
    const std::size_t all = input_elements(p, rank);
    if (input) return count_changed(p, rank, 0, all, in) == 0;
    const std::size_t before = std::min(in_place_output(p, rank), all);
    const std::size_t after = std::min(before + output_elements(p, rank), all);
    return count_changed(p, rank, 0, before, in) == 0 &&
           count_changed(p, rank, after, all - after, in + after * size_of(p.type)) == 0;
  }

  Guarded output;
  std::optional<Guarded> input;
  std::byte *in, *out;
};

}  // namespace

Team::Team(int size, const Options& options) : Team(Communicator::create_local(size, options)) {}
Team::Team(std::vector<Communicator> ranks) : ranks_(std::move(ranks)), streams_(ranks_.size()) {}

void Team::synchronize() {
  std::exception_ptr first;
  for (Stream& stream : streams_) {
    try {
      stream.synchronize();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::string Case::text() const {
  return fmt::format("{} {} {} × {}, {} ranks, {}, root {}, {}, {}, offset {}, seed {}",
                     name(pattern.collective), name(pattern.op), name(pattern.type), pattern.count,
                     pattern.ranks, algorithm ? name(*algorithm) : "automatic", pattern.root,
                     in_place ? "in place" : "out of place", registered ? "registered" : "private",
                     offset, pattern.seed);
}

std::string checked_call(Communicator& comm, const Case& one) {
  Buffers mine(one, comm.rank());
  make_call(comm, one.pattern, mine.in, mine.out, {.algorithm = one.algorithm});
  return mine.faults(one, comm.rank());
}

void check(Team& team, const Case& one) {
  std::vector<std::unique_ptr<Buffers>> buffers;
  for (int r = 0; r < team.size(); ++r) buffers.push_back(std::make_unique<Buffers>(one, r));
  team.each([&](Communicator& comm, CallOptions how) {
    how.algorithm = one.algorithm;
    Buffers& mine = *buffers[static_cast<std::size_t>(comm.rank())];
    make_call(comm, one.pattern, mine.in, mine.out, how);
  });
  for (int r = 0; r < team.size(); ++r)
    EXPECT_EQ(buffers[static_cast<std::size_t>(r)]->faults(one, r), "");
}

}  // namespace treering::test
