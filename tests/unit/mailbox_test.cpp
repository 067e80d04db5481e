// The division of a mailbox, the words in mail posts, and the lock among launches of one rank.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/exec/host/group.hpp"
#include "kernels/wire/mail.hpp"
#include "plan/mailbox.hpp"

namespace treering {
namespace {

constexpr std::size_t mebi = 1 << 20;

MailboxLayout layout_of(std::size_t budget, int size, std::size_t slot = 0) {
  return {shape_mail(budget, size), shape_freight(budget, size, slot),
          static_cast<std::size_t>(size)};
}

TEST(Mailbox, PartsLieBesideOneAnother) {
  struct Part {
    std::size_t begin, bytes;
  };
  for (const std::size_t budget : {std::size_t{4096}, std::size_t{100'000}, 12 * mebi, 200 * mebi})
    for (const int size : {1, 2, 3, 16, 300}) {
      const MailboxLayout box = layout_of(budget, size, budget == 4096 ? 1000 : 0);
      std::vector<Part> parts;
      for (int p = 0; p < size; ++p) {
        const std::size_t mail = box.mail.slots, freight = box.freight.slots;
        const std::vector<Part> flags{{box.mail_posts(p), mail * line_bytes},
                                      {box.replies(p), mail * line_bytes},
                                      {box.freight_posts(p), freight * line_bytes},
                                      {box.mail_credit(p), line_bytes},
                                      {box.freight_credit(p), line_bytes}};
        for (const Part& flag : flags) {  // they are backed together
          EXPECT_GE(flag.begin, box.flags(p));
          EXPECT_LE(flag.begin + flag.bytes, box.flags(p) + box.flag_bytes());
          parts.push_back(flag);
        }
        EXPECT_LE(mail * box.mail.slot_bytes, box.mail_bytes());
        EXPECT_LE(freight * box.freight.slot_bytes, box.freight_bytes());
        parts.push_back({box.mail_slots(p), box.mail_bytes()});
        parts.push_back({box.freight_slots(p), box.freight_bytes()});
      }
      std::ranges::sort(parts, {}, &Part::begin);
      std::size_t end = 0;
      for (const Part& part : parts) {
        EXPECT_GE(part.begin, end);
        EXPECT_EQ(part.begin % line_bytes, 0U);
        end = part.begin + part.bytes;
      }
      EXPECT_LE(end, box.bytes());
    }
}

TEST(Mailbox, ShapesFollowTheBudget) {
  const auto expect_mail = [](std::size_t budget, int size, std::uint32_t slots,
                              std::uint32_t bytes) {
    const WireShape mail = shape_mail(budget, size);
    EXPECT_EQ(mail.slots, slots) << budget << " bytes, " << size << " ranks";
    EXPECT_EQ(mail.slot_bytes, bytes) << budget << " bytes, " << size << " ranks";
  };
  for (const int size : {1, 2, 16}) expect_mail(12 * mebi, size, 64, 2048);
  expect_mail(12 * mebi, 300, 64, 128);
  expect_mail(4096, 2, 16, 64);
  expect_mail(4096, 4, 4, 64);
  expect_mail(1, 1000, 4, 64);
}

TEST(Mailbox, ThreeHundredRanksFit) {
  const MailboxLayout box = layout_of(12 * mebi, 300);
  EXPECT_LE(box.bytes(), 20 * mebi);  // of address space, of each rank
}

TEST(Envelope, ComesBackFromItsWord) {
  for (const int tag : {0, 1, 255, 256, std::numeric_limits<std::int32_t>::max()})
    for (int type = 0; type < data_types; ++type) {
      const Envelope envelope = read_envelope(envelope_word({tag, static_cast<DataType>(type)}));
      EXPECT_EQ(envelope.tag, tag);
      EXPECT_EQ(static_cast<int>(envelope.type), type);
    }
}

TEST(Turnstile, LetsInOneAtATime) {
  constexpr int threads = 4, rounds = 20'000;
  Turnstile turnstile{};
  int entered = 0, tried = 0;  // plain: only who has entered touches them
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      const HostGroup group(0, 1, 100);
      for (int i = 0; i < rounds; ++i) {
        group.enter(turnstile);
        ++entered;
        group.leave(turnstile);
        if (!group.try_enter(turnstile)) continue;
        ++tried;
        group.leave(turnstile);
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(entered, threads * rounds);
  EXPECT_GT(tried, 0);
  EXPECT_TRUE(HostGroup(0, 1, 0).try_enter(turnstile));
  EXPECT_FALSE(HostGroup(0, 1, 0).try_enter(turnstile));
}

}  // namespace
}  // namespace treering
