#include "perf/versus/ours.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "perf/bench/rank.hpp"
#include "perf/call.hpp"
#include "perf/peers/library.hpp"

namespace treering::perf {
namespace {

/// Rank 0 makes the id, the others find it in the control memory.
UniqueId agree_on_id(const Seat& seat) {
  std::byte* const note = seat.control.note().data();
  if (seat.rank == 0) {
    const UniqueId id = UniqueId::create();
    std::copy(id.bytes().begin(), id.bytes().end(), note);
  }
  seat.control.barrier();
  return UniqueId::from_bytes(note);
}

class Ours : public Library {
 public:
  Ours(const Options& options, const Seat& seat)
      : registered_(options.registered),
        comm_(Communicator::create(agree_on_id(seat), seat.ranks, seat.rank,
                                   communicator_options(options))),
        how_(call_options(options)) {}

  std::string version() const override { return fmt::format("Treering {}", TREERING_VERSION); }
  bool can(const Pattern&) const override { return true; }
  void call(const Pattern& p, const void* input, void* output) override {
    make_call(comm_, p, input, output, how_);
  }
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    if (!registered_) return Library::allocate(bytes);
    auto buffer = std::make_shared<Buffer>(bytes);
    return {buffer, buffer->as<std::byte>()};
  }
  void describe(Answer& answer) const override {
    const CallReport report = comm_.last_call();
    answer.algorithm = report.algorithm;
    answer.wire = report.wire;
    answer.direct = report.direct;
  }

 private:
  bool registered_;
  Communicator comm_;
  CallOptions how_;
};

}  // namespace

int attend_as_ours(const Options& options, const std::string& seat) {
  const std::size_t colon = seat.find(':');
  return attend({seat.substr(0, colon), seat.substr(colon + 1)},
                [&](const Seat& at) { return std::make_unique<Ours>(options, at); });
}

std::vector<std::string> our_command(const std::vector<std::string>& command_line,
                                     const std::string& address, int rank) {
  std::vector<std::string> words = command_line;
  words[0] = "/proc/self/exe";
  words.emplace_back("--contender");
  words.push_back(fmt::format("{}:{}", address, rank));
  return words;
}

}  // namespace treering::perf
