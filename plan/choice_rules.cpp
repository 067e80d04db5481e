#include "plan/choice_rules.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "base/units.hpp"
#include "plan/choice.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

/// A part of the text, which knows where it stands.
struct Piece {
  std::string_view text;
  std::size_t place;  ///< in the whole text

  /// Up to a separator, which is taken off as well.
  Piece take(char separator) {
    const std::size_t end = std::min(text.find(separator), text.size());
    const Piece first{text.substr(0, end), place};
    const std::size_t skipped = std::min(end + 1, text.size());
    text.remove_prefix(skipped);
    place += skipped;
    return first;
  }
  bool has(char letter) const { return text.find(letter) != std::string_view::npos; }
};

[[noreturn]] void refuse(const Piece& piece, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' at letter {} of the choice: {}", piece.text, piece.place + 1, why));
}

/// What a parser of names or sizes says, with the place.
template <class Parse>
auto parse_at(const Piece& piece, Parse parse) {
  try {
    return parse(piece.text);
  } catch (const Error& error) {
    refuse(piece, error.what());
  }
}

/// "64K-", "0-64K".
void read_range(const Piece& range, std::size_t& begin, std::size_t& end) {
  Piece rest = range;
  if (!range.has('-')) refuse(range, "a range has a '-': 0-64K, or 64K- for all from there on");
  const Piece first = rest.take('-');
  begin = parse_at(first, parse_size);
  if (!rest.text.empty()) end = parse_at(rest, parse_size);
  if (begin >= end) refuse(range, "the range is empty");
}

std::size_t size_behind(const Piece& word, std::size_t prefix) {
  const std::size_t size = parse_at({word.text.substr(prefix), word.place + prefix}, parse_size);
  if (size == 0) refuse(word, "it must be at least 1 byte");
  return size;
}

std::string valid_words(Collective collective) {
  std::string words;
  for (const Algorithm a : algorithms_of(collective)) words += fmt::format("{}, ", name(a));
  for (const WireType w : {WireType::simple, WireType::ll})
    if (has_wire(collective, w)) words += fmt::format("{}, ", name(w));
  return words +
         "streaming, cached, streaming_slots, cached_slots; with a size of your own chunk64K";
}

void read_word(const Piece& word, Collective collective, Forced& forced) {
  constexpr std::string_view chunk = "chunk";
  for (const Algorithm a : algorithms_of(collective))
    if (word.text == name(a)) return void(forced.algorithm = a);
  for (const WireType w : {WireType::simple, WireType::ll})
    if (word.text == name(w) && has_wire(collective, w)) return void(forced.wire = w);
  if (word.text == "streaming" || word.text == "cached")
    forced.streaming = word.text == "streaming";
  else if (word.text == "streaming_slots" || word.text == "cached_slots")
    forced.streaming_slots = word.text == "streaming_slots";
  else if (word.text.starts_with(chunk) && word.text.size() > chunk.size())
    forced.chunk = size_behind(word, chunk.size());
  else
    refuse(word, fmt::format("valid for {}: {}", name(collective), valid_words(collective)));
}

}  // namespace

Forced Forced::or_else(const Forced& other) const {
  const auto first = [](const auto& a, const auto& b) { return a ? a : b; };
  return {.algorithm = first(algorithm, other.algorithm),
          .wire = first(wire, other.wire),
          .chunk = first(chunk, other.chunk),
          .streaming = first(streaming, other.streaming),
          .streaming_slots = first(streaming_slots, other.streaming_slots)};
}

ChoiceRules ChoiceRules::parse(std::string_view text) {
  ChoiceRules all;
  for (Piece rest{text, 0}; !rest.text.empty();) {
    Piece rules = rest.take(';');
    if (!rules.has(':')) refuse(rules, "it must be a collective, ':' and what is forced");
    const Collective collective = parse_at(rules.take(':'), parse_collective);
    do {
      Piece words = rules.take(',');
      Rule rule{.collective = even(collective), .begin = 0, .end = SIZE_MAX, .forced = {}};
      if (words.has('=')) read_range(words.take('='), rule.begin, rule.end);
      do read_word(words.take('/'), collective, rule.forced);
      while (!words.text.empty());
      all.rules_.push_back(rule);
    } while (!rules.text.empty());
  }
  return all;
}

Forced ChoiceRules::find(Collective collective, std::size_t bytes) const {
  for (const Rule& rule : rules_)
    if (rule.collective == even(collective) && rule.begin <= bytes && bytes < rule.end)
      return rule.forced;
  return {};
}

}  // namespace treering
