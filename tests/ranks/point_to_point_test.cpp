// Messages between two ranks: what every execution does alike. Team drives all ranks by one thread.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "collectives/access.hpp"
#include "tests/ranks/letters.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto u8 = DataType::u8;
constexpr auto i32 = DataType::i32;

class PointToPoint : public testing::TestWithParam<int> {};

/// Around every limit: empty, in a post, in a mail slot, in one freight slot, in many.
TEST_P(PointToPoint, Lengths) {
  Team team(GetParam());
  const MailboxLayout& box = membership(team[0]).mailbox();
  const std::size_t mail = box.mail.slot_bytes, freight = box.freight.slot_bytes;
  const std::size_t window = box.freight.slots;
  std::uint64_t seed = 1;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, inline_bytes, inline_bytes + 1, mail - 1, mail, mail + 1,
        freight - 1, freight, freight + 1, window * freight, (2 * window + 1) * freight + 7})
    for (const bool registered : {false, true})
      for (const std::size_t offset : {0, 1, 9}) {
        std::vector<Letter> letters;
        for (int from = 0; from < team.size(); ++from)
          letters.push_back({.from = from,
                             .to = (from + 1) % team.size(),
                             .tag = 3,
                             .count = bytes,
                             .registered = registered,
                             .offset = offset});
        check(team, letters, seed++);
      }
}

TEST_P(PointToPoint, RandomSchedules) {
  Team team(GetParam());
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    check(team, random_letters(team.size(), 100, 20'000, seed), seed);
  }
}

/// Everyone posts its receives first and its sends last, or the other way round; all at once.
TEST_P(PointToPoint, AGroupIsInNoRequiredOrder) {
  Team team(GetParam());
  constexpr std::size_t count = 200'000;
  const auto size = static_cast<std::size_t>(team.size());
  for (const bool receives_first : {false, true}) {
    std::vector<std::vector<int>> out(size), in(size);
    team.each([&](Communicator& comm, const CallOptions& how) {
      const auto me = static_cast<std::size_t>(comm.rank());
      out[me].resize(count);
      std::iota(out[me].begin(), out[me].end(), comm.rank());
      in[me].assign(size * count, -1);
      std::vector<Transfer> all;
      for (int peer = 0; peer < comm.size(); ++peer) {
        const auto part = in[me].data() + static_cast<std::size_t>(peer) * count;
        all.push_back(Transfer::send(out[me].data(), count, i32, peer));
        all.push_back(Transfer::receive(part, count, i32, peer));
      }
      std::ranges::partition(all, [&](const Transfer& t) { return t.sends != receives_first; });
      comm.exchange(all, how);
    });
    for (std::size_t me = 0; me < size; ++me)
      for (std::size_t peer = 0; peer < size; ++peer)
        ASSERT_TRUE(std::equal(out[peer].begin(), out[peer].end(),
                               in[me].begin() + static_cast<std::ptrdiff_t>(peer * count)));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, PointToPoint, testing::Values(1, 2, 3, 5));

class TwoRanksPointToPoint : public testing::Test {
 protected:
  template <class First, class Second>
  void each(First first, Second second) {
    team_.each([&](Communicator& comm, const CallOptions& how) {
      comm.rank() == 0 ? first(comm, how) : second(comm, how);
    });
  }
  static void nothing(Communicator&, const CallOptions&) {}

  Team team_{2};
};

TEST_F(TwoRanksPointToPoint, MessagesWithOneTagComeInTheOrderSent) {
  constexpr int messages = 500;  // many times the window
  std::vector<int> sent(messages), got(messages, -1);
  std::iota(sent.begin(), sent.end(), 0);
  std::vector<Message> heard(messages);
  each(
      [&](Communicator& comm, const CallOptions& how) {
        std::vector<Transfer> all;
        for (int i = 0; i < messages; ++i)
          all.push_back(Transfer::send(&sent[static_cast<std::size_t>(i)], 1, i32, 1, i % 7));
        comm.exchange(all, how);
      },
      [&](Communicator& comm, const CallOptions& how) {
        std::vector<Transfer> all;
        for (std::size_t i = 0; i < messages; ++i)
          all.push_back(
              Transfer::receive(&got[i], 1, i32, i % 2 != 0 ? 0 : any_source, any_tag, &heard[i]));
        comm.exchange(all, how);
      });
  EXPECT_EQ(got, sent);
  for (int i = 0; i < messages; ++i) EXPECT_EQ(heard[static_cast<std::size_t>(i)].tag, i % 7);
}

/// As many sends as the window holds complete before anybody receives them; then in reverse order.
TEST_F(TwoRanksPointToPoint, UnmatchedMailWaitsInTheWindow) {
  const auto window = static_cast<int>(membership(team_[0]).mailbox().mail.slots);
  EXPECT_EQ(window, 64);
  for (int round = 0; round < 3; ++round) {
    std::vector<int> sent(64), got(64, -1);
    std::iota(sent.begin(), sent.end(), 100 * round);
    for (int i = 0; i < window; ++i)
      each(
          [&](Communicator& comm, const CallOptions& how) {
            comm.send(&sent[static_cast<std::size_t>(i)], 1, i32, 1, i, how);
          },
          nothing);
    for (int i = window; i-- > 0;)
      each(nothing, [&](Communicator& comm, const CallOptions& how) {
        comm.receive(&got[static_cast<std::size_t>(i)], 1, i32, 0, i, how);
      });
    EXPECT_EQ(got, sent);
  }
}

TEST_F(TwoRanksPointToPoint, MessagesToOneselfAreBuffered) {
  int sent = 7, got = 0;
  each([&](Communicator& comm, const CallOptions& how) { comm.send(&sent, 1, i32, 0, 0, how); },
       nothing);
  each([&](Communicator& comm, const CallOptions& how) { comm.receive(&got, 1, i32, 0, 0, how); },
       nothing);
  EXPECT_EQ(got, 7);
}

TEST_F(TwoRanksPointToPoint, CollectivesInBetween) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    check(team_, {.pattern = {Collective::all_reduce, i32, ReduceOp::sum, 2, 5000, seed}});
    check(team_, random_letters(2, 10, 20'000, seed), seed);
  }
}

/// What rank 0 sends and rank 1 receives.
struct Mismatch {
  std::size_t sent, expected;
  DataType sent_type, expected_type;
  int from;  ///< as the receive says
};

class MismatchedPointToPoint : public testing::TestWithParam<Mismatch> {};

TEST_P(MismatchedPointToPoint, IsAnErrorOnBothRanks) {
  const auto& [sent, expected, sent_type, expected_type, from] = GetParam();
  Team team(3);
  Guarded out(sent * size_of(sent_type), false), in(expected * size_of(expected_type), false);
  team.try_each([&, &s = sent, &e = expected, st = sent_type, et = expected_type, f = from](
                    Communicator& comm, const CallOptions& how) {
    if (comm.rank() == 0) comm.send(out.data(), s, st, 1, 42, how);
    if (comm.rank() == 1) comm.receive(in.data(), e, et, f, 42, how);
  });
  const std::string text = fmt::format(
      "message with tag 42 from rank 0 to rank 1: sent was {} × {}, but the receive that it "
      "matches is for {} × {}",
      name(sent_type), sent, name(expected_type), expected);
  for (int r = 0; r < 3; ++r) {
    const Outcome o = outcome_of([&] {
      team[r].check();
      team[r].send(nullptr, 0, u8, r);
    });
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text, HasSubstr(text));
    EXPECT_THAT(o.ranks, ElementsAre(0, 1));
  }
  EXPECT_TRUE(in.untouched());
}

constexpr auto f32 = DataType::f32;
INSTANTIATE_TEST_SUITE_P(
    All, MismatchedPointToPoint,
    testing::Values(Mismatch{10, 11, f32, f32, 0}, Mismatch{11, 10, f32, f32, any_source},
                    Mismatch{0, 1, f32, f32, 0}, Mismatch{1, 0, f32, f32, 0},
                    Mismatch{10, 10, f32, i32, 0}, Mismatch{40, 10, u8, f32, any_source},
                    Mismatch{10, 100'000, f32, f32, 0}, Mismatch{100'000, 10, f32, f32, 0},
                    Mismatch{100'000, 100'001, f32, f32, any_source},
                    Mismatch{100'000, 100'000, f32, i32, 0}));

TEST(BadPointToPoint, IsRefusedBeforeAnythingIsSent) {
  Team team(2);
  std::vector<float> data(10);
  float* odd = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(data.data()) + 1);
  const auto refused = [&](const Transfer& bad, auto... parts) {
    const std::vector<Transfer> group{Transfer::send(data.data(), 1, f32, 0, 9), bad};
    const Outcome o = outcome_of([&] { team[1].exchange(group); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument) << testing::PrintToString(o);
    EXPECT_THAT(o.ranks, ElementsAre(1));
    EXPECT_THAT(o.text, AllOf(HasSubstr(parts)...));
  };
  const auto to = [&](int peer, int tag) { return Transfer::send(data.data(), 1, f32, peer, tag); };
  const auto from = [&](int peer, int tag) {
    return Transfer::receive(data.data(), 1, f32, peer, tag);
  };
  refused(to(2, 0), "send on rank 1", "`to` = 2", "0 to 1");
  refused(to(any_source, 0), "send on rank 1", "`to` = -1");
  refused(from(2, 0), "receive on rank 1", "`from` = 2");
  refused(from(-2, 0), "`from` = -2");
  refused(to(0, -1), "send on rank 1", "`tag` = -1; tags are 0 or above");
  refused(from(0, -2), "receive on rank 1", "`tag` = -2");
  refused(Transfer::send(nullptr, 3, f32, 0), "`data` is null", "count is 3", "12 B");
  refused(Transfer::receive(nullptr, 3, f32, 0), "`data` is null");
  refused(Transfer::send(odd, 3, f32, 0), "not aligned", "f32 needs a multiple of 4");
  refused(Transfer::send(data.data(), 3, static_cast<DataType>(99), 0), "`type` = 99");
  refused(Transfer::send(data.data(), ~std::size_t{0}, f32, 0), "more than any memory holds");
  const Outcome o =
      outcome_of([&] { team[1].send(data.data(), 1, f32, 0, 0, {.algorithm = Algorithm::ring}); });
  EXPECT_EQ(o.code, ErrorCode::unsupported);
  EXPECT_THAT(o.text, HasSubstr("pairwise"));

  // Had one of the good transfers of those groups been sent, this receive would find it.
  const float sent = 5;
  float got = 0;
  team.each([&](Communicator& comm, const CallOptions& how) {
    if (comm.rank() == 1) comm.send(&sent, 1, f32, 0, 9, how);
    if (comm.rank() == 0) comm.receive(&got, 1, f32, 1, 9, how);
  });
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace treering::test
