#include "tests/ranks/team.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "tests/ranks/guarded.hpp"

namespace treering::test {
namespace {

Guarded guarded(std::size_t elements, const Case& one) {
  const std::size_t element = size_of(one.pattern.type);
  return Guarded(elements * element, one.registered, one.offset * element);
}

/// One rank's buffers; in place both are parts of one.
struct Buffers {
  Buffers(const Case& one, int rank)
      : output(guarded(one.in_place
                           ? std::max(input_elements(one.pattern), output_elements(one.pattern))
                           : output_elements(one.pattern),
                       one)) {
    if (!one.in_place) input.emplace(guarded(input_elements(one.pattern), one));
    const std::size_t element = size_of(one.pattern.type);
    in = one.in_place ? output.data() + in_place_input(one.pattern, rank) * element : input->data();
    out =
        one.in_place ? output.data() + in_place_output(one.pattern, rank) * element : output.data();
    fill_input(one.pattern, rank, 0, input_elements(one.pattern), in);
  }

  /// What is wrong after the call; empty if nothing is.
  std::string faults(const Case& one, int rank) {
    const Pattern& p = one.pattern;
    std::string text;
    if (const auto wrong = count_wrong(p, rank, 0, output_elements(p), out))
      text += fmt::format(" {} elements of the output are wrong;", wrong);
    if (input && count_changed(p, rank, 0, input_elements(p), in) != 0)
      text += " the input was changed;";
    if (!output.intact() || (input && !input->intact()))
      text += " bytes around a buffer were touched;";
    return text.empty() ? text : fmt::format("rank {}, {}:{}", rank, one.text(), text);
  }

  Guarded output;
  std::optional<Guarded> input;
  std::byte *in, *out;
};

}  // namespace

void make_call(Communicator& comm, const Pattern& p, const void* in, void* out,
               const CallOptions& how) {
  switch (p.collective) {
    case Collective::all_reduce:
      return comm.all_reduce(in, out, p.count, p.type, p.op, how);
    case Collective::reduce_scatter:
      return comm.reduce_scatter(in, out, p.count, p.type, p.op, how);
    case Collective::all_gather:
      return comm.all_gather(in, out, p.count, p.type, how);
    case Collective::all_to_all:
      return comm.all_to_all(in, out, p.count, p.type, how);
    case Collective::barrier:
      return comm.barrier(how);
    case Collective::point_to_point:
      break;
  }
}

Team::Team(int size, const Options& options)
    : ranks_(Communicator::create_local(size, options)), streams_(static_cast<std::size_t>(size)) {}

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
  return fmt::format("{} {} {} × {}, {} ranks, {}, {}, {}, offset {}, seed {}",
                     name(pattern.collective), name(pattern.op), name(pattern.type), pattern.count,
                     pattern.ranks, algorithm ? name(*algorithm) : "automatic",
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
