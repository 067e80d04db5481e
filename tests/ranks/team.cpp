#include "tests/ranks/team.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "perf/call.hpp"

namespace treering::test {

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
  return fmt::format("{} {} {} × {}, {} ranks, {} over {}, root {}, {}, {}, offset {}, seed {}",
                     name(pattern.collective), name(pattern.op), name(pattern.type), pattern.count,
                     pattern.ranks, algorithm ? name(*algorithm) : "automatic",
                     wire ? name(*wire) : "any wire", pattern.root,
                     in_place ? "in place" : "out of place", registered ? "registered" : "private",
                     offset, pattern.seed);
}

Side::Side(const Case& one, int rank) : case_(one), rank_(rank), output_(buffer()) {
  const Pattern& p = case_.pattern;
  if (!case_.in_place) input_.emplace(buffer());
  const std::size_t element = size_of(p.type);
  in_ = case_.in_place ? output_.data() + in_place_input(p, rank) * element : input_->data();
  out_ = case_.in_place ? output_.data() + in_place_output(p, rank) * element : output_.data();
  fill_input(p, rank, 0, input_elements(p, rank), in_);
}

Guarded Side::buffer() const {
  const std::size_t element = size_of(case_.pattern.type);
  return Guarded(most_elements(case_.pattern) * element, case_.registered, case_.offset * element);
}

void Side::call(Communicator& comm, CallOptions how) {
  how.algorithm = case_.algorithm;
  how.wire = case_.wire;
  make_call(comm, case_.pattern, in_, out_, how);
}

std::string Side::faults() const {
  const Pattern& p = case_.pattern;
  std::string text;
  if (const auto wrong = count_wrong(p, rank_, 0, output_elements(p, rank_), out_))
    text += fmt::format(" {} elements of the output are wrong;", wrong);
  if (!input_kept()) text += " the input was changed;";
  if (!output_.intact() || (input_ && !input_->intact()))
    text += " bytes around a buffer were touched;";
  if (input_ && output_elements(p, rank_) == 0 && !output_.untouched())
    text += " an output that is not this rank's was written;";
  return text.empty() ? text : fmt::format("rank {}, {}:{}", rank_, case_.text(), text);
}

bool Side::input_kept() const {
  const Pattern& p = case_.pattern;
  const std::size_t all = input_elements(p, rank_);
  if (input_) return count_changed(p, rank_, 0, all, in_) == 0;
  const std::size_t before = std::min(in_place_output(p, rank_), all);
  const std::size_t after = std::min(before + output_elements(p, rank_), all);
  return count_changed(p, rank_, 0, before, in_) == 0 &&
         count_changed(p, rank_, after, all - after, in_ + after * size_of(p.type)) == 0;
}

std::string checked_call(Communicator& comm, const Case& one) {
  Side mine(one, comm.rank());
  mine.call(comm);
  return mine.faults();
}

void check(Team& team, const Case& one) {
  std::vector<std::unique_ptr<Side>> sides;
  for (int r = 0; r < team.size(); ++r) sides.push_back(std::make_unique<Side>(one, r));
  team.each([&](Communicator& comm, const CallOptions& how) {
    sides[static_cast<std::size_t>(comm.rank())]->call(comm, how);
  });
  for (const auto& side : sides) EXPECT_EQ(side->faults(), "");
}

}  // namespace treering::test
