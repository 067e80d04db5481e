#include "tests/ranks/fake_peer.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "base/descriptor_message.hpp"
#include "perf/peers/address.hpp"
#include "perf/peers/library.hpp"

namespace treering::test {
namespace {

using perf::Answer;
using perf::Order;

constexpr const char* flag = "--fake-peer";

/// Speaks the protocol; its only collective that can be right is the barrier.
class Fake : public perf::Library {
 public:
  Fake(std::string behaviour, const perf::Seat& seat)
      : behaviour_(std::move(behaviour)), seat_(seat) {}
  std::string version() const override { return "fake of " + std::to_string(seat_.ranks); }
  bool can(const Pattern&) const override { return behaviour_ != "cannot"; }
  void call(const Pattern&, const void*, void*) override {
    const bool second = seat_.rank == 1;
    if (behaviour_ == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (behaviour_ == "silent") pause();
    if (behaviour_ == "stuck" && second)
      for (volatile bool forever = true; forever;) {
      }
    if (behaviour_ == "dies" && second) kill(getpid(), SIGKILL);
    if (behaviour_ == "fails" && second) throw std::runtime_error("out of paper");
    seat_.control.barrier();
  }

 private:
  std::string behaviour_;
  perf::Seat seat_;
};

/// Joins, and answers the first order after that with `bytes` of `answer`.
int answer_badly(const std::string& address, Answer answer, std::size_t bytes) {
  const UniqueFd command = perf::connect_to(address);
  Answer good;
  good.kind = Answer::Kind::hello;
  good.rank = answer.rank;
  Order order;
  int memory = -1;
  send_message(command.get(), &good, sizeof good);
  receive_message(command.get(), &order, sizeof order, memory);
  good.kind = Answer::Kind::ready;
  send_message(command.get(), &good, sizeof good);
  receive_message(command.get(), &order, sizeof order, memory);
  send_message(command.get(), &answer, bytes);
  while (receive_message(command.get(), &order, sizeof order, memory) > 0) {
  }
  return 0;
}

int live(const std::string& behaviour, const std::string& address, const std::string& rank) {
  Answer answer;
  answer.kind = Answer::Kind::result;
  answer.rank = std::stoi(rank);
  if (behaviour == "short_answer") return answer_badly(address, answer, 5);
  if (behaviour == "other_magic") {
    answer.magic = 1;
    return answer_badly(address, answer, sizeof answer);
  }
  if (behaviour == "impostor")
    return perf::attend({address, "7"}, [](const perf::Seat&) { return nullptr; });
  if (behaviour == "absent") return pause();
  if (behaviour == "quits") {
    std::puts("no licence\nfor this machine");
    return 3;
  }
  return perf::attend({address, rank}, [&](const perf::Seat& seat) {
    return std::make_unique<Fake>(behaviour, seat);
  });
}

}  // namespace

std::vector<std::string> fake_peer(const std::string& behaviour, const std::string& address,
                                   int rank) {
  return {"/proc/self/exe", flag, behaviour, address, std::to_string(rank)};
}

bool run_as_fake_peer(int argc, char** argv, int& status) {
  if (argc != 5 || std::string(argv[1]) != flag) return false;
  status = live(argv[2], argv[3], argv[4]);
  return true;
}

}  // namespace treering::test
