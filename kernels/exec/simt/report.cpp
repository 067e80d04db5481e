#include "kernels/exec/simt/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace treering::simt {
namespace {

constexpr int most_blocks = 32;  // that a report lists

std::string threads_text(const std::vector<int>& ranks, const char* one, const char* many) {
  if (ranks.size() == 1) return fmt::format("thread {} {}", ranks[0], one);
  if (ranks.size() > 4)
    return fmt::format("{} threads ({}, {}, {} …) {}", ranks.size(), ranks[0], ranks[1], ranks[2],
                       many);
  return fmt::format("threads {} {}", fmt::join(ranks, ", "), many);
}

std::string barrier_text(const Block& block, const Thread& thread, std::size_t arrived) {
  const std::string_view path = thread.place.file_name();
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const Barrier& barrier = *thread.barrier;
  const std::ptrdiff_t number = &barrier - block.barriers;
  const bool is_block = number >= 0 && number < named_barriers;
  const std::string what = !is_block     ? "shuffle"
                           : number == 0 ? "barrier"
                                         : fmt::format("barrier {}", number);
  return fmt::format("{} at {}:{}, {} of {} threads arrived", what, file, thread.place.line(),
                     arrived, barrier.expected);
}

/// Threads that wait for the same are told of together.
std::string block_text(const Block& block) {
  if (!block.begun) return "has not begun: no slot is free";
  std::vector<int> exited;
  std::vector<std::string> texts;
  std::map<std::string, std::vector<int>> polling;
  std::map<std::tuple<const Barrier*, unsigned, unsigned>, std::vector<const Thread*>> blocked;
  for (int rank = 0; rank < block.grid->threads; ++rank) {
    const Thread* thread = block.threads[rank];
    if (thread == nullptr)
      exited.push_back(rank);
    else if (thread->state == State::blocked)
      blocked[{thread->barrier, thread->place.line(), thread->place.column()}].push_back(thread);
    else
      polling[fmt::format("the {} of {}", name(thread->site),
                          thread->peer < 0 ? "any rank" : fmt::format("rank {}", thread->peer))]
          .push_back(rank);
  }
  for (const auto& [what, ranks] : polling)
    texts.push_back(fmt::format("{} {}", threads_text(ranks, "waits for", "wait for"), what));
  for (const auto& [place, threads] : blocked)
    texts.push_back(barrier_text(block, *threads[0], threads.size()));
  if (!exited.empty()) texts.push_back(threads_text(exited, "has exited", "have exited"));
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string owner(const Grid& grid) {
  return grid.rank < 0 ? fmt::format("kernel {}", grid.number) : fmt::format("rank {}", grid.rank);
}

}  // namespace

TREERING_UNSEEN bool doomed(const Grid& grid) {
  for (int b = 0; b < grid.blocks; ++b)
    if (grid.block[b].live > 0 && grid.block[b].blocked == grid.block[b].live) return true;
  return false;
}

Error stuck(std::span<Grid* const> grids, std::uint64_t seed,
            std::span<const char* const> waiting_calls) {
  std::string text = fmt::format(
      "kernels can never complete (simt, seed {}); look for a missing signal, a wrong step, or a "
      "barrier that "
      "not all threads reach:",
      seed);
  for (const char* call : waiting_calls)
    text += fmt::format("\n  the host: {} waits until kernels have ended", call);
  std::vector<int> ranks;
  int blocks = 0;
  for (const Grid* grid : grids) {
    if (grid->rank >= 0) ranks.push_back(grid->rank);
    if (grid->held != nullptr) {
      text += fmt::format("\n  {}: its kernel {}", owner(*grid), grid->held);
      continue;
    }
    for (const Block& block : std::span(grid->block, grid->blocks)) {
      if (block.live == 0 || ++blocks > most_blocks) continue;
      text += fmt::format("\n  {}, block {}: {}", owner(*grid), block.index, block_text(block));
    }
  }
  if (blocks > most_blocks) text += fmt::format("\n  and {} more blocks", blocks - most_blocks);
  return Error(ErrorCode::stuck, text, std::move(ranks));
}

}  // namespace treering::simt
