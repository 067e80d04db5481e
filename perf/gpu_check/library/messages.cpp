// Question 10, for messages: every rank sends to the next and receives from the one before, all in one grid.

#include <fmt/format.h>

#include <deque>

#include "perf/bench/memory.hpp"
#include "perf/gpu_check/library.hpp"

namespace treering::gpu_check {
namespace {

/// In the post, in a mail slot, by reference or freight, and by many pieces of that.
constexpr std::size_t counts[] = {0, 1, 100, 1000, 40'007};

/// One rank's letter, and where the other's will lie.
struct Letters {
  Letters(std::size_t bytes, bool registered)
      : sent_memory(bytes, registered), received_memory(bytes, registered) {}
  perf::Memory sent_memory, received_memory;
};

void exchange(std::span<Communicator> ranks, std::span<Stream> streams, std::size_t count,
              bool registered, Findings& findings) {
  const int n = static_cast<int>(ranks.size());
  const std::size_t bytes = count * sizeof(float);
  const Pattern pattern{Collective::all_gather, DataType::f32, ReduceOp::sum, n, count, count + 1};
  std::deque<Letters> letters;
  for (int r = 0; r < n; ++r) {
    Letters& mine = letters.emplace_back(bytes, registered);
    mine.sent_memory.region(bytes, 0).write_input(pattern, r, 0, count, 0);
    mine.received_memory.region(bytes, 0).poison();
    mine.received_memory.region(bytes, 0).guard(r);
  }
  LaunchGroup group;
  for (int r = 0; r < n; ++r) {
    const auto index = static_cast<std::size_t>(r);
    const void* out = letters[index].sent_memory.region(bytes, 0).at(0);
    void* in = letters[index].received_memory.region(bytes, 0).at(0);
    ranks[index].exchange({Transfer::send(out, count, DataType::f32, (r + 1) % n),
                           Transfer::receive(in, count, DataType::f32, (r + n - 1) % n)},
                          {.stream = &streams[index]});
  }
  group.launch();
  for (Stream& stream : streams) stream.synchronize();
  for (int r = 0; r < n; ++r) {
    const auto region = letters[static_cast<std::size_t>(r)].received_memory.region(bytes, 0);
    const auto wrong = region.changed_input(pattern, (r + n - 1) % n, 0, count, 0);
    if (wrong != 0 || region.broken_guards(r) != 0)
      findings.fail(
          fmt::format("rank {} of {}: of a message of {} elements {} arrived wrong, and {} bytes "
                      "beside them were written",
                      r, n, count, wrong, region.broken_guards(r)));
  }
}

void check_messages(int n, Findings& findings) {
  std::vector<Communicator> ranks = Communicator::create_local(n);
  std::vector<Stream> streams(static_cast<std::size_t>(n));
  for (const bool registered : {false, true})
    for (const std::size_t count : counts) exchange(ranks, streams, count, registered, findings);
  findings.number("checked", static_cast<double>(2 * std::size(counts)) * n);
}

}  // namespace

Probes message_probes() {
  Probes all;
  for (const int n : {2, 4, 8})
    all.push_back({.name = fmt::format("messages.{}", n),
                   .question = "do messages among ranks in one grid arrive",
                   .seconds = 20,
                   .run = [n](Findings& findings) { check_messages(n, findings); }});
  return all;
}

}  // namespace treering::gpu_check
