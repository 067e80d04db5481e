#include "collectives/guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <thread>

#include "base/rank_list.hpp"

namespace treering {
namespace {

using namespace std::chrono_literals;

/// How long ranks that are late may keep their peers from reporting what they called.
constexpr auto patience = 500ms;

std::string describe(const Descriptor& call, bool with_plan) {
  if (call.collective == Collective::barrier) return "barrier()";
  std::string text = fmt::format("{}({}", name(call.collective), name(call.type));
  if (call.collective != Collective::all_to_all_v) text += fmt::format(" × {}", call.count);
  if (call.splits != 0) text += fmt::format(" in parts #{:08x}", call.splits);
  if (reduces(call.collective)) text += fmt::format(", {}", name(call.op));
  if (has_root(call.collective)) text += fmt::format(", root {}", call.root);
  if (with_plan)
    text += fmt::format(", by {} over {} wires in chunks of {}", name(call.algorithm),
                        name(call.wire), call.chunk);
  return text + ")";
}

constexpr const char* advice =
    "All ranks must make the same calls in the same order. This communicator is broken; correct "
    "the program, or create a new one.";

/// Calls `ready` every millisecond until it is true or patience is at an end.
template <class Ready>
void await(Ready ready) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!ready() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
}

}  // namespace

Guard::Guard(int rank, std::vector<Board*> boards, std::span<Verdict> verdicts)
    : rank_(rank), boards_(std::move(boards)), verdicts_(verdicts) {}

std::uint64_t Guard::encode(const Cause& cause) {
  return (static_cast<std::uint64_t>(cause.code) + 1) |  // 0 is "none"
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(cause.rank) & 0x3fffff) << 8 |
         static_cast<std::uint64_t>(cause.detail) << 30 | (cause.sequence & 0xffffffff) << 32;
}

Guard::Cause Guard::decode(std::uint64_t word) {
  return {static_cast<ErrorCode>((word & 0xff) - 1), static_cast<int>(word >> 8 & 0x3fffff),
          word >> 32, static_cast<Detail>(word >> 30 & 3)};
}

bool Guard::broken() const {
  return load_relaxed(own().abort.value) != 0 ||
         std::ranges::any_of(verdicts_,
                             [](const Verdict& v) { return load_relaxed(v.failure) != 0; });
}

void Guard::check() {
  if (!broken()) return;
  const std::lock_guard lock(mutex_);
  if (!error_) {
    const Cause cause =
        decode(encode(find_cause()));  // with as much of a number as others will read
    error_ = explain(cause);
    spread(cause);
  }
  // A text of its own: copies share theirs, and the seat may be destroyed by another thread.
  throw Error(error_->code(), error_->what(), error_->ranks());
}

void Guard::abort() noexcept { give_up(ErrorCode::aborted); }

void Guard::give_up(ErrorCode why) noexcept { spread({why, rank_, 0}); }

/// The cause first: who finds its waits ended asks for it.
void Guard::spread(const Cause& cause) noexcept {
  store_release(own().cause.value, encode(cause));
  for (int r = 0; r < size(); ++r)
    if (Board* const theirs = board(r)) store_release(theirs->abort.value, 1);
}

void Guard::lost(int peer) noexcept {
  const Board* theirs = board(peer);
  if (theirs != nullptr && load_acquire(theirs->closed.value) != 0) return;
  int none = -1;
  lost_.compare_exchange_strong(none, peer);
  store_release(own().abort.value, 1);
}

void Guard::close() {
  const std::lock_guard lock(mutex_);  // check() may be reading boards
  closed_ = true;
}

Board* Guard::board(int rank) const {
  return closed_ && rank != rank_ ? nullptr : boards_[static_cast<std::size_t>(rank)];
}

Guard::Cause Guard::find_cause() {
  std::optional<Cause> cause;
  await([&] { return (cause = known_cause()).has_value(); });
  if (cause) return *cause;
  const auto failed = std::ranges::find_if(
      verdicts_, [](const Verdict& v) { return load_acquire(v.failure) != 0; });
  if (failed == verdicts_.end()) return {ErrorCode::peer_lost, rank_, 0};
  const int peer = static_cast<int>(failed->peer);
  // The peer has gone on, and its board shows later calls only; or it broke off and never said why.
  if (static_cast<Failure>(load_acquire(failed->failure)) == Failure::mismatch)
    return {ErrorCode::mismatch, peer, failed->sequence};
  return {ErrorCode::peer_lost, peer, 0};
}

std::optional<Guard::Cause> Guard::known_cause() const {
  if (const auto cause = misfit()) return cause;
  for (const Verdict& verdict : verdicts_) {
    const auto why = static_cast<Failure>(load_acquire(verdict.failure));
    const bool suspicious = why == Failure::peer_failed || why == Failure::peer_closed;
    if (why == Failure::sizes)
      return Cause{ErrorCode::mismatch, rank_, verdict.sequence, Detail::sizes};
    if (!suspicious && why != Failure::mismatch) continue;
    // Perhaps an earlier call than this one, in which this rank owed no wait.
    if (const auto call = differing_call(verdict.sequence))
      return Cause{ErrorCode::mismatch, static_cast<int>(verdict.peer), *call};
  }
  if (const auto announced = announced_cause()) return announced;
  if (const auto conflict = size_conflict()) return conflict;
  if (const int peer = lost_; peer >= 0) return Cause{ErrorCode::peer_lost, peer, 0};
  for (const Verdict& verdict : verdicts_)
    if (static_cast<Failure>(load_acquire(verdict.failure)) == Failure::peer_closed)
      return Cause{ErrorCode::peer_lost, static_cast<int>(verdict.peer), 0};
  return std::nullopt;
}

/// What a peer found out before us; or that we were aborted.
std::optional<Guard::Cause> Guard::announced_cause() const {
  for (int r = 0; r < size(); ++r) {
    const Board* theirs = board(r);
    const std::uint64_t word = theirs != nullptr ? load_acquire(theirs->cause.value) : 0;
    if (word != 0) return decode(word);
  }
  return std::nullopt;
}

/// A message that a receive could not take.
std::optional<Guard::Cause> Guard::misfit() const {
  for (int r = 0; r < size(); ++r) {
    const Board* theirs = board(r);
    if (theirs != nullptr && load_acquire(theirs->misfit.valid) != 0)
      return Cause{ErrorCode::mismatch, r, 0, Detail::message};
  }
  return std::nullopt;
}

/// What a peer's kernels found, whose host has not looked.
std::optional<Guard::Cause> Guard::size_conflict() const {
  for (int r = 0; r < size(); ++r) {
    const Board* theirs = board(r);
    if (theirs == nullptr || load_acquire(theirs->failed.value) == 0) continue;
    if (const std::uint64_t call = load_relaxed(theirs->conflict.call); call != 0)
      return Cause{ErrorCode::mismatch, r, call, Detail::sizes};
  }
  return std::nullopt;
}

/// The earliest call up to number `latest` that boards still show and that differs.
std::optional<std::uint64_t> Guard::differing_call(std::uint64_t latest) const {
  const std::uint64_t earliest = latest < board_entries ? 1 : latest - board_entries + 1;
  for (std::uint64_t call = earliest; call <= latest; ++call)
    if (boards_differ(call)) return call;
  return std::nullopt;
}

bool Guard::boards_differ(std::uint64_t sequence) const {
  std::uint64_t first = 0;
  for (int r = 0; r < size(); ++r) {
    Descriptor call{};
    const Board* theirs = board(r);
    const std::uint64_t word = theirs != nullptr ? read(*theirs, sequence, call) : 0;
    if (word == 0) continue;
    if (first == 0) first = word;
    if (word != first) return true;
  }
  return false;
}

Error Guard::explain(const Cause& cause) const {
  switch (cause.code) {
    case ErrorCode::mismatch:
      if (cause.detail == Detail::message) return explain_misfit(cause.rank);
      return cause.detail == Detail::sizes ? explain_sizes(cause) : explain_mismatch(cause);
    case ErrorCode::aborted:
      return {cause.code,
              cause.rank == rank_
                  ? fmt::format("rank {}: the communicator was aborted", rank_)
                  : fmt::format("rank {}: rank {} aborted the communicator", rank_, cause.rank),
              {cause.rank}};
    case ErrorCode::peer_lost:
      return {
          cause.code,
          fmt::format("rank {}: rank {} is gone: its process ended, or it left the communicator "
                      "while others "
                      "still used it. This communicator is broken; look for the reason at rank {}",
                      rank_, cause.rank, cause.rank),
          {cause.rank}};
    default:
      return {cause.code,
              fmt::format("rank {}: a call failed on rank {} ({}). This communicator is broken; "
                          "look at what rank {} says",
                          rank_, cause.rank, name(cause.code), cause.rank),
              {cause.rank}};
  }
}

Error Guard::explain_sizes(const Cause& cause) const {
  const Board* finder = board(cause.rank);
  if (finder == nullptr) finder = &own();  // it left meanwhile
  Descriptor call{};
  read(*finder, cause.sequence, call);
  const std::size_t element = size_of(call.type);
  const SizeConflict& conflict = finder->conflict;
  const auto sender = static_cast<int>(load_relaxed(conflict.sender));
  const auto receiver = static_cast<int>(load_relaxed(conflict.receiver));
  return {ErrorCode::mismatch,
          fmt::format(
              "call {}: {}: rank {} sends {} elements of {} to rank {}, which expects {}. What a "
              "rank sends to another must be what that one expects to receive. This "
              "communicator is broken; correct the program, or create a new one.",
              cause.sequence, name(call.collective), sender, load_relaxed(conflict.sent) / element,
              name(call.type), receiver, load_relaxed(conflict.expected) / element),
          {sender, receiver}};
}

Error Guard::explain_misfit(int receiver) const {
  const Board* finder = board(receiver);
  if (finder == nullptr) finder = &own();  // it left meanwhile
  const Misfit& misfit = finder->misfit;
  const auto what = [](std::uint64_t type, std::uint64_t bytes) {
    const auto of = static_cast<DataType>(type);
    return fmt::format("{} × {}", name(of), bytes / size_of(of));
  };
  const int sender = static_cast<int>(load_relaxed(misfit.sender));
  return {
      ErrorCode::mismatch,
      fmt::format("message with tag {} from rank {} to rank {}: sent was {}, but the receive "
                  "that it matches is for {}. Both sides must name the same type and count. "
                  "This communicator is broken; correct the program, or create a new one.",
                  load_relaxed(misfit.tag), sender, receiver,
                  what(load_relaxed(misfit.sent_type), load_relaxed(misfit.sent_bytes)),
                  what(load_relaxed(misfit.expected_type), load_relaxed(misfit.expected_bytes))),
      sender == receiver ? std::vector{sender} : std::vector{sender, receiver}};
}

Error Guard::explain_mismatch(const Cause& cause) const {
  std::map<int, Descriptor> calls;
  await([&] {
    for (int r = 0; r < size(); ++r) {
      Descriptor call{};
      const Board* theirs = board(r);
      if (theirs != nullptr && read(*theirs, cause.sequence, call) != 0) calls.emplace(r, call);
    }
    return calls.size() == boards_.size();
  });

  // Ranks by what they called; the rarest call first, since it is the likely mistake.
  std::vector<std::pair<Descriptor, std::vector<int>>> groups;
  for (const auto& [rank, call] : calls) {
    auto same =
        std::ranges::find_if(groups, [&](const auto& group) { return group.first == call; });
    if (same == groups.end()) same = groups.insert(groups.end(), {call, {}});
    same->second.push_back(rank);
  }
  std::ranges::sort(groups, {}, [](const auto& group) {
    return std::pair(group.second.size(), group.second.front());
  });

  const bool plan_only = std::ranges::all_of(groups, [&](const auto& group) {
    return describe(group.first, false) == describe(groups.front().first, false);
  });
  std::string text;
  for (const auto& [call, ranks] : groups)
    text += fmt::format("{}{} called {}", text.empty() ? "" : ", ", rank_list(ranks),
                        describe(call, plan_only));
  std::vector<int> absent;
  for (int r = 0; r < size(); ++r)
    if (!calls.contains(r)) absent.push_back(r);
  if (!absent.empty()) text += fmt::format(", {} called nothing yet", rank_list(absent));
  return {ErrorCode::mismatch, fmt::format("call {}: {}. {}", cause.sequence, text, advice),
          groups.empty() ? std::vector<int>{} : groups.front().second};
}

}  // namespace treering
