#include "perf/versus/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/exec/device.hpp"
#include "perf/versus/catalog.hpp"
#include "perf/versus/ours.hpp"

namespace treering::perf {
namespace {

/// What all contenders together may take in a round; with the probes it is then under a second.
constexpr double round_seconds = 0.8;

std::uint64_t wrong_elements(const std::vector<Answer>& answers) {
  std::uint64_t wrong = 0;
  for (const Answer& answer : answers) wrong += answer.wrong;
  return wrong;
}

Order order_of(Order::Kind kind, const Case& c, int number) {
  Order order;
  order.kind = kind;
  order.what = c;
  order.case_number = number;
  return order;
}

double probe(Field& field) {
  Order order;
  order.kind = Order::Kind::probe;
  return field.ask_ours(order).front().seconds;
}

/// How often everybody is timed in a round of this case.
class Schedule {
 public:
  Schedule(Field& field, const Options& options, const Case& c, int number)
      : options_(options), order_(order_of(Order::Kind::time, c, number)) {
    order_.calls = options.calls_per_iteration;
    order_.warmups = 1;
    order_.iterations = 2;
    slice_ = round_seconds / static_cast<double>(1 + field.peers_left());
    ours_ = fit(field.ask_ours(order_));
    for (std::size_t peer = 0; peer < field.peers().size(); ++peer) {
      const auto answers = field.ask(peer, order_);
      peers_.push_back(answers ? fit(*answers) : 1);
    }
  }

  Order ours() const { return with(ours_); }
  Order peer(std::size_t i) const { return with(peers_[i]); }

 private:
  int fit(const std::vector<Answer>& trial) const {
    const double cost = trial.front().total_seconds / (order_.warmups + order_.iterations);
    return iterations_within(slice_, cost, options_.iterations);
  }
  /// A warm-up for every four iterations.
  Order with(int iterations) const {
    Order order = order_;
    order.iterations = iterations;
    order.warmups = std::min(options_.warmups, std::max(1, iterations / 4));
    return order;
  }

  const Options& options_;
  Order order_;
  double slice_;
  int ours_ = 1;
  std::vector<int> peers_;
};

void check(Field& field, const Options& options, const Case& c, int number, CaseResult& result) {
  if (options.checks == 0) return;
  const Order order = order_of(Order::Kind::check, c, number);
  result.wrong = wrong_elements(field.ask_ours(order));
  for (std::size_t peer = 0; peer < field.peers().size(); ++peer)
    if (const auto answers = field.ask(peer, order); answers && wrong_elements(*answers) > 0)
      field.drop(peer, fmt::format("{} elements of its {} of {} bytes are wrong",
                                   wrong_elements(*answers), name(c.collective), c.bytes));
}

}  // namespace

Field::Field(const Options& options, const std::vector<std::string>& command_line)
    : ranks_(options.ranks), ours_("treering", options.ranks) {
  for (int rank = 0; rank < ranks_; ++rank)
    ours_.launch(our_command(command_line, ours_.address(), rank));
  ours_.meet(options.pin);
  for (const std::string& name : options.versus) {
    const std::string launcher = launcher_of(name, options.peers_folder);
    if (launcher.empty()) {
      report_.unavailable[name] = why_missing(name);
      continue;
    }
    names_.push_back(name);
    peers_.push_back(std::make_unique<Contender>(name, ranks_));
    try {
      Contender& peer = *peers_.back();
      peer.launch({launcher, std::to_string(ranks_), peer.address()});
      peer.meet(options.pin);
      report_.versions[name] = peer.version();
    } catch (const Error& error) {
      drop(names_.size() - 1, error.what());
    }
  }
}

std::size_t Field::peers_left() const {
  return static_cast<std::size_t>(std::count_if(peers_.begin(), peers_.end(),
                                                [](const auto& peer) { return peer != nullptr; }));
}

std::optional<std::vector<Answer>> Field::ask(std::size_t peer, const Order& order) {
  if (!peers_[peer]) return std::nullopt;
  try {
    auto answers = peers_[peer]->ask(order);
    if (answers.front().kind == Answer::Kind::cannot) return std::nullopt;
    return answers;
  } catch (const Error& error) {
    drop(peer, error.what());
    return std::nullopt;
  }
}

void Field::drop(std::size_t peer, const std::string& why) {
  fmt::print("# {} drops out: {}\n", names_[peer], why);
  report_.unavailable[names_[peer]] = why;
  peers_[peer].reset();
}

std::vector<RankPlace> Field::places() const {
  std::vector<RankPlace> places;
  const std::vector<int> processes = ours_.processes();
  for (int rank = 0; rank < ranks_; ++rank)
    places.push_back({processes[static_cast<std::size_t>(rank)], device().describe()});
  return places;
}

CaseResult run_case(Field& field, const Options& options, const Case& c, int number) {
  CaseResult result;
  check(field, options, c, number, result);
  const Schedule schedule(field, options, c, number);
  const std::size_t contenders = 1 + field.peers().size();
  for (int i = 0; i < options.rounds; ++i) {
    Round round;
    round.peers.resize(field.peers().size());
    const double before = probe(field);
    for (std::size_t turn = 0; turn < contenders; ++turn) {
      const std::size_t who = (turn + static_cast<std::size_t>(i)) % contenders;  // 0: ours
      if (who > 0) {
        const auto answers = field.ask(who - 1, schedule.peer(who - 1));
        if (answers) round.peers[who - 1] = answers->front().seconds;
        continue;
      }
      const auto answers = field.ask_ours(schedule.ours());
      round.ours = answers.front().seconds;
      result.ours = answers.front();
      for (const Answer& answer : answers) result.direct = result.direct && answer.direct;
    }
    round.distance = classify(before, probe(field));
    result.rounds.push_back(round);
  }
  return result;
}

double measure_copy_rate(Field& field) {
  Order order;
  order.kind = Order::Kind::copy;
  return field.ask_ours(order).front().rate;
}

}  // namespace treering::perf
