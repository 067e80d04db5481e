#include "tests/ranks/outcome.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ostream>
#include <sstream>

namespace treering::test {
namespace {

constexpr int no_error = -1;

}  // namespace

Outcome outcome(const Error& error) {
  return {error.code(), error.ranks(), error.what(), std::chrono::milliseconds{0}};
}

std::string Outcome::line() const {
  return fmt::format("outcome {} {} {} {} {}", code ? static_cast<int>(*code) : no_error,
                     took.count(), ranks.size(), fmt::join(ranks, " "), text);
}

Outcome Outcome::parse(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string head;
  int code = no_error;
  std::chrono::milliseconds::rep took = 0;
  std::size_t ranks = 0;
  Outcome result;
  words >> head >> code >> took >> ranks;
  if (!words || head != "outcome")
    throw std::runtime_error(fmt::format("a rank said \"{}\" instead of an outcome", line));
  if (code != no_error) result.code = static_cast<ErrorCode>(code);
  result.took = std::chrono::milliseconds(took);
  result.ranks.resize(ranks);
  for (int& rank : result.ranks) words >> rank;
  words >> std::ws;
  std::getline(words, result.text);
  return result;
}

void PrintTo(const Outcome& o, std::ostream* out) {
  *out << (o.code ? name(*o.code) : "no error") << " after " << o.took.count() << " ms: " << o.text;
}

}  // namespace treering::test
