#include "transport/rendezvous/exchange.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/rank_list.hpp"
#include "base/system_error.hpp"
#include "transport/rendezvous/channel.hpp"
#include "transport/rendezvous/door.hpp"

namespace treering {
namespace {

/// Everyone's bytes as one message: all lengths, then all bytes.
std::vector<std::byte> concatenate(const std::vector<std::vector<std::byte>>& parts) {
  std::vector<std::byte> whole(parts.size() * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::uint64_t length = parts[i].size();
    std::memcpy(whole.data() + i * sizeof length, &length, sizeof length);
    whole.insert(whole.end(), parts[i].begin(), parts[i].end());
  }
  return whole;
}

std::vector<std::vector<std::byte>> split(const std::vector<std::byte>& whole, std::size_t count) {
  std::vector<std::vector<std::byte>> parts(count);
  auto begin = whole.begin() + static_cast<std::ptrdiff_t>(count * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = 0;
    std::memcpy(&length, whole.data() + i * sizeof length, sizeof length);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    parts[i].assign(begin, end);
    begin = end;
  }
  return parts;
}

UniqueFd duplicate(int descriptor) {
  UniqueFd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) throw system_error("duplicate a descriptor");
  return copy;
}

}  // namespace

struct Exchange::State {
  int rank, size;
  std::chrono::milliseconds timeout;
  Look look;
  std::vector<Channel>
      channels{};  // rank 0: one for each rank, its own not open; others: one, to rank 0
  std::optional<Error> broken{};  // what every operation throws from now on

  /// Runs one operation; an Error of this rank alone becomes everyone's.
  template <class Operation>
  auto guarded(Operation operation) {
    if (broken) throw *broken;
    try {
      return operation();
    } catch (const Error& error) {
      if (!broken) spread(named(error));
      throw *broken;
    }
  }

  /// Everyone's bytes, by way of rank 0.
  std::vector<std::vector<std::byte>> gather(Kind kind, std::span<const std::byte> mine) {
    const auto count = static_cast<std::size_t>(size);
    if (rank != 0) return split(ask(pack(kind, mine)).bytes, count);
    std::vector<std::vector<std::byte>> all(count);
    all[0].assign(mine.begin(), mine.end());
    std::vector<Message> messages = collect(kind);
    for (std::size_t i = 1; i < count; ++i) all[i] = std::move(messages[i].bytes);
    answer(pack(kind, concatenate(all)));
    return all;
  }

  /// Everyone's descriptors. The bytes say, for each rank, whether it has one.
  std::vector<UniqueFd> gather_descriptors(int mine) {
    const std::byte has_one{mine >= 0};
    std::vector<int> passed;
    if (mine >= 0) passed.push_back(mine);
    return rank != 0 ? place(ask(pack(Kind::descriptors, {&has_one, 1}, passed)))
                     : serve_descriptors(mine);
  }

  /// Makes an Error everyone's: rank 0 tells all others, another rank tells rank 0.
  void spread(const Error& error) {
    broken = error;
    for (Channel& channel : channels)
      if (channel.open()) channel.post(pack(error));
    flush_all(channels, Deadline(grace));
  }

  Error named(const Error& error) const {
    return Error(error.code(), fmt::format("rank {}: {}", rank, error.what()),
                 error.ranks().empty() ? std::vector{rank} : error.ranks());
  }

 private:
  [[noreturn]] void give_up(const Error& error) {
    spread(error);
    throw error;
  }

  /// Rank 0: a message from each other rank, by rank.
  std::vector<Message> collect(Kind kind) {
    const Deadline deadline(timeout, look);
    for (std::vector<int> missing; !(missing = silent(kind)).empty();)
      if (!serve(channels, deadline)) give_up(late(kind, missing));
    std::vector<Message> messages(channels.size());
    for (std::size_t i = 1; i < channels.size(); ++i) messages[i] = channels[i].take_message();
    return messages;
  }

  /// Rank 0: those whose message has not come. Gives up on those from whom it never will.
  std::vector<int> silent(Kind kind) {
    std::vector<int> ranks;
    for (int other = 1; other < size; ++other) {
      const Channel& channel = channels[static_cast<std::size_t>(other)];
      const Message* const message = channel.message();
      if (message == nullptr && !channel.open())
        give_up(Error(ErrorCode::peer_lost,
                      fmt::format("rank {} ended during start-up ({}); look at its output", other,
                                  name(kind)),
                      {other}));
      if (message == nullptr) {
        ranks.push_back(other);
      } else if (message->kind == Kind::failed) {
        give_up(unpack_error(*message));
      } else if (message->kind != kind) {
        give_up(Error(
            ErrorCode::mismatch,
            fmt::format(
                "rank {} is at {} of its start-up, rank 0 at {}; do all use the same settings?",
                other, name(message->kind), name(kind)),
            {other}));
      }
    }
    return ranks;
  }

  Error late(Kind kind, const std::vector<int>& missing) const {
    return Error(
        ErrorCode::timeout,
        fmt::format("waited {} in start-up ({}) for {}; look at what keeps {}", in_words(timeout),
                    name(kind), rank_list(missing), missing.size() == 1 ? "it" : "them"),
        missing);
  }

  /// Rank 0: the same to all others.
  void answer(const SharedPacket& packet) {
    for (Channel& channel : channels)
      if (channel.open()) channel.post(packet);
    flush_all(channels, Deadline(timeout));
  }

  /// Other ranks: rank 0's answer.
  Message ask(SharedPacket question) {
    // Rank 0's time may begin a little later; it knows better why this takes so long.
    const Deadline deadline(timeout + grace, look);
    Channel& channel = channels.front();
    channel.post(std::move(question));
    while (channel.message() == nullptr) {
      if (!channel.open())
        give_up(
            Error(ErrorCode::peer_lost, "rank 0 ended during start-up; look at its output", {0}));
      if (!serve(channels, deadline))
        give_up(Error(ErrorCode::timeout,
                      fmt::format("rank {} waited {} in start-up for rank 0; look at what keeps it",
                                  rank, in_words(timeout)),
                      {0}));
    }
    Message answer = channel.take_message();
    if (answer.kind == Kind::failed) {
      broken = unpack_error(answer);
      throw *broken;
    }
    return answer;
  }

  std::vector<UniqueFd> serve_descriptors(int mine) {
    std::vector<Message> messages = collect(Kind::descriptors);
    std::vector<UniqueFd> all(messages.size());
    if (mine >= 0) all[0] = duplicate(mine);
    for (std::size_t i = 1; i < all.size(); ++i)
      if (!messages[i].descriptors.empty()) all[i] = std::move(messages[i].descriptors.front());
    std::vector<std::byte> has_one;
    std::vector<int> passed;
    for (const UniqueFd& descriptor : all) {
      has_one.push_back(std::byte{static_cast<bool>(descriptor)});
      if (descriptor) passed.push_back(descriptor.get());
    }
    answer(pack(Kind::descriptors, has_one, std::move(passed)));
    return all;
  }

  static std::vector<UniqueFd> place(Message message) {
    std::vector<UniqueFd> all(message.bytes.size());
    auto next = message.descriptors.begin();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (message.bytes[i] != std::byte{0}) all[i] = std::move(*next++);
    return all;
  }
};

Exchange Exchange::join(const Invitation& invitation, int world_size, int rank,
                        std::chrono::milliseconds timeout, const Look& look) {
  if (world_size < 1)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the number of ranks is {}, must be at least 1", world_size));
  raise_descriptor_limit();
  auto state = std::make_unique<State>(rank, world_size, timeout, look);
  std::optional<std::vector<Channel>> channels;
  if (rank == 0)
    channels = world_size == 1 ? std::vector<Channel>(1)
                               : open_door(invitation, world_size, timeout, look);
  if (!channels) channels.emplace().push_back(knock(invitation, world_size, rank, timeout, look));
  state->channels = std::move(*channels);
  return Exchange(std::move(state));
}

Exchange::Exchange(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

int Exchange::rank() const noexcept { return state_->rank; }
int Exchange::size() const noexcept { return state_->size; }

std::vector<std::vector<std::byte>> Exchange::all_gather(std::span<const std::byte> mine) {
  return state_->guarded([&] { return state_->gather(Kind::all_gather, mine); });
}

std::vector<UniqueFd> Exchange::all_gather_descriptors(int descriptor_or_minus_1) {
  return state_->guarded([&] { return state_->gather_descriptors(descriptor_or_minus_1); });
}

void Exchange::barrier() {
  state_->guarded([&] { return state_->gather(Kind::barrier, {}); });
}

void Exchange::fail(const Error& error) {
  if (!state_->broken) state_->spread(state_->named(error));
}

}  // namespace treering
