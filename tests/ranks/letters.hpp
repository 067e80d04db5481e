#pragma once

// Messages with known content, and schedules by which ranks exchange them.
//
// A schedule lists each rank's transfers in groups, one exchange() each. Schedules are random, but
// such that no rank waits for ever: all ranks go through the letters in one order, as far as their
// groups are concerned. Within a group the order is arbitrary, but for letters that only their order
// tells apart.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/ranks/guarded.hpp"
#include "tests/ranks/team.hpp"

namespace treering::test {

struct Letter {
  int from, to, tag;
  std::size_t count;
  DataType type = DataType::u8;
  bool from_any = false;  ///< received from any source: the tag tells it apart
  bool registered = false;
  std::size_t offset = 0;  ///< elements by which buffers begin off their alignment

  std::string text() const;
};

/// The transfers of a rank, and the buffers that they use.
class Correspondence {
 public:
  /// `letters`: alike on all ranks; `seed` decides what is written in them.
  Correspondence(std::vector<Letter> letters, int rank, std::uint64_t seed);

  /// A schedule for all letters that this rank sends or receives; some groups may be empty. `alike_on_all`: what one
  /// rank sends in a group another receives in its group of the same number, as a LaunchGroup needs.
  std::vector<std::vector<Transfer>> schedule(std::uint64_t seed, bool alike_on_all = false);
  /// What is wrong when all is done: nothing if empty.
  std::string faults();

 private:
  struct Side {
    std::size_t letter;
    bool sends;
    std::unique_ptr<Guarded> memory;
    Message received{};
  };
  Pattern pattern(std::size_t letter) const;
  Transfer transfer(Side& side) const;

  std::vector<Letter> letters_;
  int rank_;
  std::uint64_t seed_;
  std::vector<Side> sides_;
};

/// `count` letters among `size` ranks, of all kinds and of up to `longest` elements.
std::vector<Letter> random_letters(int size, std::size_t count, std::size_t longest,
                                   std::uint64_t seed);

/// Sends the letters by random schedules, on the team's streams. Adds a failure of the test for each
/// rank where something is wrong.
void check(Team& team, const std::vector<Letter>& letters, std::uint64_t seed);

}  // namespace treering::test
