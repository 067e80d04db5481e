// The loop in which every contender is timed, Treering like its peers.

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/descriptor_message.hpp"
#include "base/system_error.hpp"
#include "base/unique_fd.hpp"
#include "perf/bench/pin.hpp"
#include "perf/peers/address.hpp"
#include "perf/peers/library.hpp"
#include "perf/peers/machine.hpp"

namespace treering::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

constexpr std::size_t page = 4096;

/// Input and output of one case. They begin at fixed distances from a page, the same for all
/// contenders, and nowhere a multiple of a page apart, which some caches do not like.
class Buffers {
 public:
  Buffers(Library& library, const Pattern& p, const Seat& seat)
      : pattern_(p),
        rank_(seat.rank),
        in_bytes_(input_elements(p, rank_) * size_of(p.type)),
        out_bytes_(output_elements(p, rank_) * size_of(p.type)),
        in_memory_(library.allocate(in_bytes_ + 2 * page)),
        out_memory_(library.allocate(out_bytes_ + 2 * page)),
        piece_(std::min<std::size_t>(in_bytes_, 256 << 10)) {
    fill_input(p, rank_, 0, piece_.size() / size_of(p.type), piece_.data());
  }

  std::byte* input() const { return shifted(in_memory_.get(), 320); }
  /// A broadcast is made in place, the only way that MPI and oneCCL have.
  std::byte* output() const {
    const bool gives = pattern_.collective == Collective::broadcast && rank_ == pattern_.root;
    return gives ? input() : shifted(out_memory_.get(), 2112);
  }
  const std::byte* source() const {
    return pattern_.collective == Collective::broadcast ? output() : input();
  }

  /// Every line of the input is written anew, from a piece that stays in the cache.
  void rewrite() const {
    for (std::size_t done = 0; done < in_bytes_; done += piece_.size())
      std::memcpy(input() + done, piece_.data(), std::min(piece_.size(), in_bytes_ - done));
  }
  void prepare_check() const {
    std::memset(output(), 0xd7, out_bytes_);
    fill_input(pattern_, rank_, 0, input_elements(pattern_, rank_), input());
  }
  std::uint64_t wrong() const {
    return count_wrong(pattern_, rank_, 0, output_elements(pattern_, rank_), output()) +
           count_changed(pattern_, rank_, 0, input_elements(pattern_, rank_), input());
  }

 private:
  std::byte* shifted(std::byte* begin, std::size_t shift) const {
    const std::size_t to_page = -reinterpret_cast<std::uintptr_t>(begin) % page;
    return begin + to_page + shift + 128 * static_cast<std::size_t>(rank_ % 8);
  }

  Pattern pattern_;
  int rank_;
  std::size_t in_bytes_, out_bytes_;
  std::shared_ptr<std::byte> in_memory_, out_memory_;
  std::vector<std::byte> piece_;
};

/// One rank that obeys orders.
class Attendant {
 public:
  Attendant(Library& library, const Seat& seat) : library_(library), seat_(seat) {}

  Answer obey(const Order& order) {
    if (order.case_number != case_number_) buffers_.reset();
    case_number_ = order.case_number;
    Answer answer;
    answer.kind = Answer::Kind::result;
    if (order.kind == Order::Kind::probe) answer.seconds = probe_distance(seat_);
    if (order.kind == Order::Kind::copy) answer.rate = copy_rate(seat_);
    if (order.kind != Order::Kind::time && order.kind != Order::Kind::check) return answer;

    const Pattern p = timed_pattern(order.what, seat_.ranks);
    if (!library_.can(p)) {
      answer.kind = Answer::Kind::cannot;
      return answer;
    }
    if (!buffers_) buffers_ = std::make_unique<Buffers>(library_, p, seat_);
    order.kind == Order::Kind::time ? time(order, p, answer) : check(p, answer);
    library_.describe(answer);
    return answer;
  }

 private:
  void call(const Pattern& p) { library_.call(p, buffers_->source(), buffers_->output()); }

  void time(const Order& order, const Pattern& p, Answer& answer) {
    const auto begin = Clock::now();
    for (int i = 0; i < order.warmups; ++i) time_once(order, p);
    std::vector<double> times(static_cast<std::size_t>(order.iterations));
    for (double& seconds : times) seconds = time_once(order, p);
    const auto middle = times.begin() + order.iterations / 2;
    std::nth_element(times.begin(), middle, times.end());
    answer.seconds = *middle;
    answer.total_seconds = seconds_since(begin);
  }

  /// Seconds of one call, on the slowest rank.
  double time_once(const Order& order, const Pattern& p) {
    buffers_->rewrite();
    seat_.control.barrier();  // absorbs long waits, from which ranks wake up at different times;
    seat_.control.barrier();  // the second lets them go together
    const auto begin = Clock::now();
    for (int i = 0; i < order.calls; ++i) call(p);
    const double mine = seconds_since(begin) / order.calls;
    return seat_.control.combine(seat_.rank, {.seconds = mine}).seconds;
  }

  void check(const Pattern& p, Answer& answer) {
    buffers_->prepare_check();
    seat_.control.barrier();
    call(p);
    answer.wrong = buffers_->wrong();
  }

  Library& library_;
  const Seat& seat_;
  std::unique_ptr<Buffers> buffers_;
  int case_number_ = -1;
};

/// Ends this process, wherever it is, soon after the command is gone: a call of a library may never
/// return. The rank ends by itself before that if it can.
void end_with_command(int socket) {
  std::thread([socket] {
    pollfd hung_up{socket, 0, 0};
    while (poll(&hung_up, 1, -1) < 0) {
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    _exit(1);
  }).detach();
}

/// The last of the words, or what the launcher of an MPI says.
int rank_of(const std::vector<std::string>& words) {
  const char* text = words.size() > 1 ? words[1].c_str() : std::getenv("OMPI_COMM_WORLD_RANK");
  if (text == nullptr) text = std::getenv("PMI_RANK");
  int rank = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), rank);
  if (rank < 0) throw Error(ErrorCode::invalid_argument, "Nobody says which rank this process is.");
  return rank;
}

class Connection {
 public:
  Connection(const std::string& address, int rank) : socket_(connect_to(address)), rank_(rank) {}
  int descriptor() const { return socket_.get(); }

  void send(Answer answer) const {
    answer.rank = rank_;
    send_message(socket_.get(), &answer, sizeof answer);
  }
  void send(Answer::Kind kind, const std::string& text) const {
    Answer answer;
    answer.kind = kind;
    answer.set_text(text);
    send(answer);
  }
  /// False when the command has ended the connection.
  bool receive(Order& order, UniqueFd& beside) const {
    int descriptor = -1;
    const ssize_t got = receive_message(socket_.get(), &order, sizeof order, descriptor);
    beside.reset(descriptor);
    return got == sizeof order && order.magic == protocol_magic;
  }

 private:
  UniqueFd socket_;
  int rank_;
};

void live(const Connection& command, int rank, const Join& join) {
  command.send(Answer::Kind::hello, "");
  Order order;
  UniqueFd beside;
  if (!command.receive(order, beside)) return;
  const int all_cores = cores();  // before pinning, after which there are fewer
  Control control = Control::inherited(beside.release());
  const Seat seat{rank, order.ranks, all_cores, order.pin, control};
  const std::unique_ptr<Library> library = join(seat);
  // Only this thread: those that the library has started are where it wants them.
  if (order.pin) pin_to_share(rank, order.ranks);
  command.send(Answer::Kind::ready, library->version());
  Attendant attendant(*library, seat);
  while (command.receive(order, beside)) command.send(attendant.obey(order));
}

}  // namespace

std::shared_ptr<std::byte> Library::allocate(std::size_t bytes) {
  void* const memory = std::aligned_alloc(page, (bytes + page - 1) / page * page);
  if (memory == nullptr)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("There is no memory for a buffer of {} bytes.", bytes));
  return {static_cast<std::byte*>(memory), std::free};
}

int attend(const std::vector<std::string>& words, const Join& join) try {
  const int rank = rank_of(words);
  const Connection command(words.at(0), rank);
  end_with_command(command.descriptor());
  try {
    live(command, rank, join);
    return 0;
  } catch (const std::exception& error) {
    command.send(Answer::Kind::failure, error.what());
    throw;
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}

}  // namespace treering::perf
