// The arithmetic of LL slots, and where they lie in an inbox.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/wire/ll.hpp"
#include "plan/inbox.hpp"

namespace treering {
namespace {

TEST(LlElements, HoldDataAndTheNumbersLowerHalf) {
  constexpr std::uint64_t step = 0x5'8000'0001;
  const std::uint64_t element = ll_element(step, 0xfedc'ba98);
  EXPECT_EQ(element, 0x8000'0001'fedc'ba98U);
  EXPECT_TRUE(is_of_step(element, step));
  EXPECT_TRUE(is_of_step(element, step + (std::uint64_t{1} << 32)));
  EXPECT_FALSE(is_of_step(element, step + 1));
  EXPECT_FALSE(is_of_step(0, 1));
}

TEST(LlSlots, HoldTheirCapacity) {
  for (const std::uint32_t bytes : {64, 128, 192, 1024, 4096, 32 * 1024, 256 * 1024, 1 << 30}) {
    const WireShape shape{8, bytes};
    const std::size_t capacity = ll_capacity(shape), slot = ll_slot_bytes(shape);
    EXPECT_EQ(capacity % line_bytes, 0U);
    EXPECT_GE(capacity, line_bytes);
    EXPECT_LE(capacity, 16U * 1024);
    EXPECT_EQ(slot % line_bytes, 0U);
    EXPECT_GE(slot, ll_element_bytes * (ll_header_elements + capacity / ll_data_bytes));
  }
  EXPECT_EQ(ll_capacity({8, 1024}), 512U);
  EXPECT_EQ(ll_capacity({8, 256 * 1024}), 16U * 1024);
}

TEST(LlSlots, AreStoredWholeOncePerRound) {
  const WireShape shape{4, 1024};
  constexpr std::uint64_t round = std::uint64_t{1} << 30;
  EXPECT_EQ(ll_stored_elements(shape, 5, 0), 0U);
  EXPECT_EQ(ll_stored_elements(shape, 5, 1), 1U);
  EXPECT_EQ(ll_stored_elements(shape, 5, 8), 2U);
  EXPECT_EQ(ll_stored_elements(shape, round - 1, 1), 1U);
  for (std::uint64_t slot = 0; slot < 4; ++slot)
    EXPECT_EQ(ll_stored_elements(shape, 7 * round + slot, 1), 512U / ll_data_bytes);
  EXPECT_EQ(ll_stored_elements(shape, 7 * round + 4, 1), 1U);
}

/// Everything in an inbox lies beside everything else.
TEST(InboxLayout, KeepsItsPartsApart) {
  for (const std::uint32_t slot_bytes : {64, 1024, 256 * 1024})
    for (const int size : {1, 2, 5}) {
      const InboxLayout layout{{4, slot_bytes}, static_cast<std::size_t>(size), 3};
      std::vector<std::pair<std::size_t, std::size_t>> runs;  // begin, end
      const auto add = [&](std::size_t begin, std::size_t bytes) {
        EXPECT_EQ(begin % line_bytes, 0U);
        runs.emplace_back(begin, begin + bytes);
      };
      for (int c = 0; c < 3; ++c)
        for (int p = 0; p < size; ++p) {
          add(layout.posts(c, p), 4 * line_bytes);
          add(layout.credit(c, p), line_bytes);
          add(layout.ll_credit(c, p), line_bytes);
          add(layout.slots(c, p), std::size_t{4} * slot_bytes);
          add(layout.ll_slots(c, p), 4 * ll_slot_bytes(layout.shape));
          add(layout.ll_header(c, p), sizeof(LlHeader));
          add(layout.ll_incoming(c, p), ll_capacity(layout.shape));
          add(layout.ll_outgoing(c, p), ll_capacity(layout.shape));
        }
      std::ranges::sort(runs);
      for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_LE(runs[i - 1].second, runs[i].first);
      EXPECT_LE(runs.back().second, layout.bytes());
    }
}

}  // namespace
}  // namespace treering
