#include "collectives/verify.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "base/log.hpp"

namespace treering {
namespace {

using Pair = std::pair<int, int>;  // the lower rank first
using Mark = std::array<std::uint64_t, 2>;
enum class Way : std::uint64_t { left = 1, written = 2 };

/// Another for every pair, direction and way.
Mark mark(int from, int to, Way way) {
  const std::uint64_t word = static_cast<std::uint64_t>(from) << 40 |
                             static_cast<std::uint64_t>(to) << 16 | static_cast<std::uint64_t>(way);
  return {word, ~word};
}

void leave_marks(const Membership& seat) {
  for (int p = 0; p < seat.size(); ++p)
    if (const auto lines = seat.mark_lines(p)) {
      const Mark left = mark(seat.rank(), p, Way::left);
      const Mark written = mark(seat.rank(), p, Way::written);
      seat.device().copy_now(lines->left_here, &left, sizeof left);
      if (lines->written_there != nullptr)
        seat.device().copy_now(lines->written_there, &written, sizeof written);
    }
}

std::vector<int> peers_not_found(const Membership& seat) {
  std::vector<int> missing;
  for (int p = 0; p < seat.size(); ++p)
    if (const auto lines = seat.mark_lines(p)) {
      Mark left{}, written{};
      if (lines->left_there != nullptr)
        seat.device().copy_now(&left, lines->left_there, sizeof left);
      seat.device().copy_now(&written, lines->written_here, sizeof written);
      if (left != mark(p, seat.rank(), Way::left) || written != mark(p, seat.rank(), Way::written))
        missing.push_back(p);
    }
  return missing;
}

void wipe_marks(const Membership& seat) {
  constexpr Mark nothing{};
  for (int p = 0; p < seat.size(); ++p)
    if (const auto lines = seat.mark_lines(p))
      for (std::byte* line : {lines->left_here, lines->written_here})
        seat.device().copy_now(line, &nothing, sizeof nothing);
}

std::set<Pair> gather_pairs(Exchange& exchange, const std::vector<int>& missing) {
  std::set<Pair> pairs;
  int rank = 0;
  for (const std::vector<std::byte>& bytes :
       exchange.all_gather(std::as_bytes(std::span(missing)))) {
    std::vector<int> theirs(bytes.size() / sizeof(int));
    if (!theirs.empty()) std::memcpy(theirs.data(), bytes.data(), bytes.size());
    for (const int peer : theirs) pairs.insert(std::minmax(rank, peer));
    ++rank;
  }
  return pairs;
}

Error no_other_way(const std::set<Pair>& pairs) {
  std::string text;
  std::set<int> ranks;
  for (const auto& [a, b] : pairs) {
    text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", a, b);
    ranks.insert({a, b});
  }
  return {ErrorCode::system,
          fmt::format("ranks {} have mapped each other's memory, but do not find there what the "
                      "other wrote: this machine's shared memory does not work for them. If they "
                      "run in a sandbox or an emulator, start them outside",
                      text),
          std::vector<int>(ranks.begin(), ranks.end())};
}

void use_host_memory(Membership& seat, Exchange& exchange, const std::set<Pair>& pairs) {
  std::vector<int> peers;
  for (const auto& [a, b] : pairs) {
    if (seat.rank() == a)
      log(LogLevel::warn,
          "ranks {} and {} do not reach each other's device memory, although it is mapped: their "
          "messages take the way through host memory, which is slower",
          a, b);
    if (seat.rank() == a || seat.rank() == b) peers.push_back(seat.rank() == a ? b : a);
  }
  const std::uint64_t mine = seat.make_staging(peers);
  const auto offsets = exchange.all_gather(std::as_bytes(std::span(&mine, 1)));
  for (const int peer : peers) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, offsets[static_cast<std::size_t>(peer)].data(), sizeof offset);
    seat.use_staging(peer, offset);
  }
}

}  // namespace

void verify(Membership& seat, Exchange& exchange) {
  leave_marks(seat);
  exchange.barrier();
  const std::set<Pair> pairs = gather_pairs(exchange, peers_not_found(seat));
  wipe_marks(seat);
  if (pairs.empty()) return;
  if (seat.device().execution() == Execution::host) throw no_other_way(pairs);
  use_host_memory(seat, exchange, pairs);
}

}  // namespace treering
