// What callers get wrong: an Error that names the argument, its value and what would be right, and
// a communicator that stays usable.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "tests/ranks/processes.hpp"
#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto f32 = DataType::f32;
constexpr auto sum = ReduceOp::sum;

Case all_reduce(int size, std::size_t count, std::uint64_t seed) {
  return {.pattern = {Collective::all_reduce, f32, sum, size, count, seed}};
}

class BadArgument : public testing::Test {
 protected:
  /// The call of rank 1 is refused, with that code and a text in which all of `parts` occur.
  template <class Call>
  void expect_refused(ErrorCode code, std::initializer_list<const char*> parts, Call call) {
    const Outcome o = outcome_of([&] { call(comms_[1]); });
    EXPECT_EQ(o.code, code) << testing::PrintToString(o);
    for (const char* part : parts) EXPECT_THAT(o.text, HasSubstr(part));
    ++refused_;
    expect_usable();
  }
  template <class Call>
  void expect_invalid(std::initializer_list<const char*> parts, Call call) {
    expect_refused(ErrorCode::invalid_argument, parts, call);
  }

  /// A call right afterwards is correct, which it could not be if the refused one had a number.
  void expect_usable() {
    for (const Outcome& o : on_threads(2, [&](int rank) {
           EXPECT_EQ(checked_call(comms_[static_cast<std::size_t>(rank)],
                                  all_reduce(2, 1000, static_cast<std::uint64_t>(refused_))),
                     "");
         }))
      EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
  }

  static std::string text_of(const void* pointer) { return fmt::format("{}", pointer); }

  std::vector<Communicator> comms_ = Communicator::create_local(2);
  std::vector<float> a_ = std::vector<float>(4000), b_ = std::vector<float>(4000);
  int refused_ = 0;
};

TEST_F(BadArgument, NullWithACount) {
  expect_invalid({"all_reduce on rank 1", "`input` is null", "count is 7", "28 B"},
                 [&](Communicator& c) { c.all_reduce(nullptr, b_.data(), 7, f32, sum); });
  expect_invalid({"all_reduce on rank 1", "`output` is null", "count is 7"},
                 [&](Communicator& c) { c.all_reduce(a_.data(), nullptr, 7, f32, sum); });
  expect_invalid({"reduce_scatter on rank 1", "`input` is null", "count is 7", "56 B"},
                 [&](Communicator& c) { c.reduce_scatter(nullptr, b_.data(), 7, f32, sum); });
  expect_invalid({"all_gather on rank 1", "`output` is null", "56 B"},
                 [&](Communicator& c) { c.all_gather(a_.data(), nullptr, 7, f32); });
  expect_invalid({"all_to_all on rank 1", "`input` is null"},
                 [&](Communicator& c) { c.all_to_all(nullptr, b_.data(), 7, f32); });
}

TEST_F(BadArgument, NullIsFineWithoutACount) {
  for (const Outcome& o : on_threads(2, [&](int rank) {
         Communicator& c = comms_[static_cast<std::size_t>(rank)];
         c.all_reduce(nullptr, nullptr, 0, f32, sum);
         c.reduce_scatter(nullptr, nullptr, 0, f32, sum);
         c.all_gather(nullptr, nullptr, 0, f32);
         c.all_to_all(nullptr, nullptr, 0, f32);
       }))
    EXPECT_TRUE(o.ok()) << testing::PrintToString(o);
}

TEST_F(BadArgument, NotAlignedToItsElement) {
  const auto* odd_in = reinterpret_cast<const std::byte*>(a_.data()) + 1;
  auto* odd_out = reinterpret_cast<std::byte*>(b_.data()) + 2;
  expect_invalid(
      {"`input` = ", text_of(odd_in).c_str(), "not aligned", "f32 needs a multiple of 4"},
      [&](Communicator& c) { c.all_reduce(odd_in, b_.data(), 7, f32, sum); });
  expect_invalid({"`output` = ", text_of(odd_out).c_str(), "f64 needs a multiple of 8"},
                 [&](Communicator& c) { c.all_gather(a_.data(), odd_out, 7, DataType::f64); });
  expect_invalid({"`input` = ", "bf16 needs a multiple of 2"},
                 [&](Communicator& c) { c.all_to_all(odd_in, b_.data(), 7, DataType::bf16); });
}

TEST_F(BadArgument, UnknownTypeOrOperator) {
  expect_invalid({"`type` = 15 is not a DataType"}, [&](Communicator& c) {
    c.all_reduce(a_.data(), b_.data(), 7, static_cast<DataType>(15), sum);
  });
  expect_invalid({"all_gather on rank 1", "`type` = 255 is not a DataType"}, [&](Communicator& c) {
    c.all_gather(a_.data(), b_.data(), 7, static_cast<DataType>(255));
  });
  expect_invalid({"`op` = 9 is not a ReduceOp"}, [&](Communicator& c) {
    c.all_reduce(a_.data(), b_.data(), 7, f32, static_cast<ReduceOp>(9));
  });
  expect_invalid({"reduce_scatter on rank 1", "`op` = 99 is not a ReduceOp"}, [&](Communicator& c) {
    c.reduce_scatter(a_.data(), b_.data(), 7, f32, static_cast<ReduceOp>(99));
  });
}

TEST_F(BadArgument, OperatorThatTheTypeDoesNotHave) {
  expect_invalid(
      {"all_reduce on rank 1", "`op` = bit_xor does not apply to f32; it has sum, prod, min, max"},
      [&](Communicator& c) { c.all_reduce(a_.data(), b_.data(), 7, f32, ReduceOp::bit_xor); });
  expect_invalid({"reduce on rank 1", "`op` = bit_or does not apply to f8e5m2"},
                 [&](Communicator& c) {
                   c.reduce(a_.data(), b_.data(), 7, DataType::f8e5m2, ReduceOp::bit_or, 0);
                 });
  const std::vector<std::size_t> parts{3, 4};
  expect_invalid({"reduce_scatter_v on rank 1", "`op` = premul_sum does not apply to bool"},
                 [&](Communicator& c) {
                   c.reduce_scatter_v(a_.data(), b_.data(), {parts}, DataType::boolean,
                                      ReduceOp::premul_sum);
                 });
  expect_invalid({"`op` = avg does not apply to bool; it has sum, prod, min, max, bit_and"},
                 [&](Communicator& c) {
                   c.reduce_scatter(a_.data(), b_.data(), 7, DataType::boolean, ReduceOp::avg);
                 });
}

TEST_F(BadArgument, OverlappingButNotInPlace) {
  expect_invalid({"`input` (400 B at ", "and `output` (400 B at ", "overlap", "in place pass",
                  text_of(a_.data() + 1).c_str()},
                 [&](Communicator& c) { c.all_reduce(a_.data(), a_.data() + 1, 100, f32, sum); });
  // In place on rank 1 is input + 100; this would be right on rank 0.
  expect_invalid({"reduce_scatter on rank 1", "overlap"},
                 [&](Communicator& c) { c.reduce_scatter(a_.data(), a_.data(), 100, f32, sum); });
  expect_invalid({"all_gather on rank 1", "overlap", text_of(a_.data() + 100).c_str()},
                 [&](Communicator& c) { c.all_gather(a_.data(), a_.data(), 100, f32); });
  expect_invalid({"all_to_all on rank 1", "overlap"},
                 [&](Communicator& c) { c.all_to_all(a_.data() + 150, a_.data(), 100, f32); });
}

TEST_F(BadArgument, RootThatIsNoRank) {
  for (const int root : {-1, 2, 1'000'000}) {
    const std::string text = fmt::format("`root` = {}, but ranks go from 0 to 1", root);
    expect_invalid({"broadcast on rank 1", text.c_str()},
                   [&](Communicator& c) { c.broadcast(a_.data(), b_.data(), 7, f32, root); });
    expect_invalid({"reduce on rank 1", text.c_str()},
                   [&](Communicator& c) { c.reduce(a_.data(), b_.data(), 7, f32, sum, root); });
    expect_invalid({"gather on rank 1", text.c_str()},
                   [&](Communicator& c) { c.gather(a_.data(), b_.data(), 7, f32, root); });
    expect_invalid({"scatter on rank 1", text.c_str()},
                   [&](Communicator& c) { c.scatter(a_.data(), b_.data(), 7, f32, root); });
  }
}

/// Null where a rank with this part has a buffer; what is not its own in a call with a root does not matter.
TEST_F(BadArgument, NullOfARoot) {
  expect_invalid({"broadcast on rank 1", "`input` is null"},
                 [&](Communicator& c) { c.broadcast(nullptr, b_.data(), 7, f32, 1); });
  expect_invalid({"broadcast on rank 1", "`output` is null"},
                 [&](Communicator& c) { c.broadcast(nullptr, nullptr, 7, f32, 0); });
  expect_invalid({"reduce on rank 1", "`output` is null"},
                 [&](Communicator& c) { c.reduce(a_.data(), nullptr, 7, f32, sum, 1); });
  expect_invalid({"gather on rank 1", "`output` is null", "56 B"},
                 [&](Communicator& c) { c.gather(a_.data(), nullptr, 7, f32, 1); });
  expect_invalid({"scatter on rank 1", "`input` is null", "56 B"},
                 [&](Communicator& c) { c.scatter(nullptr, b_.data(), 7, f32, 1); });
}

TEST_F(BadArgument, PartsThatAreNotOneForEachRank) {
  const std::vector<std::size_t> one{7}, two{7, 7}, three{1, 2, 3};
  expect_invalid({"all_gather_v on rank 1", "`parts` has 1 counts", "each of the 2 ranks"},
                 [&](Communicator& c) { c.all_gather_v(a_.data(), b_.data(), {one}, f32); });
  expect_invalid({"reduce_scatter_v on rank 1", "`parts` has 3 counts"}, [&](Communicator& c) {
    c.reduce_scatter_v(a_.data(), b_.data(), {three}, f32, sum);
  });
  expect_invalid({"all_to_all_v on rank 1", "`sent` has 0 counts"},
                 [&](Communicator& c) { c.all_to_all_v(a_.data(), {}, b_.data(), {two}, f32); });
  expect_invalid({"all_to_all_v on rank 1", "`received` has 3 counts"}, [&](Communicator& c) {
    c.all_to_all_v(a_.data(), {two}, b_.data(), {three}, f32);
  });
  expect_invalid({"`parts` has 3 displacements", "none, or one for each of the 2 ranks"},
                 [&](Communicator& c) {
                   c.all_gather_v(a_.data(), b_.data(), {two, three}, f32);
                 });
  expect_invalid({"`sent` has 1 displacements"}, [&](Communicator& c) {
    c.all_to_all_v(a_.data(), {two, one}, b_.data(), {two}, f32);
  });
}

TEST_F(BadArgument, PartsOfAnOutputThatOverlap) {
  const std::vector<std::size_t> counts{7, 7}, near{0, 6}, same{100, 100}, back{6, 0};
  for (const auto& displacements : {near, same, back}) {
    expect_invalid({"all_gather_v on rank 1", "`parts`: parts overlap, at element"},
                   [&](Communicator& c) {
                     c.all_gather_v(a_.data(), b_.data(), {counts, displacements}, f32);
                   });
    expect_invalid({"all_to_all_v on rank 1", "`received`: parts overlap"}, [&](Communicator& c) {
      c.all_to_all_v(a_.data(), {counts}, b_.data(), {counts, displacements}, f32);
    });
  }
}

TEST_F(BadArgument, PartsThatNoMemoryHolds) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  const std::vector<std::size_t> small{7, 7}, far{0, most / 4}, beyond{0, most - 3};
  for (const std::size_t count : {most, most / 2, most / 4, most - 6}) {
    const std::vector<std::size_t> large{7, count};
    expect_invalid({"all_gather_v on rank 1"},
                   [&](Communicator& c) { c.all_gather_v(a_.data(), b_.data(), {large}, f32); });
    expect_invalid({"reduce_scatter_v on rank 1"}, [&](Communicator& c) {
      c.reduce_scatter_v(a_.data(), b_.data(), {large}, f32, sum);
    });
    expect_invalid(
        {"all_to_all_v on rank 1", "`sent`: the part of rank 1", "than any memory holds"},
        [&](Communicator& c) { c.all_to_all_v(a_.data(), {large}, b_.data(), {large}, f32); });
  }
  for (const auto& displacements : {far, beyond})
    expect_invalid({"`parts`: the part of rank 1, 7 elements from"}, [&](Communicator& c) {
      c.all_gather_v(a_.data(), b_.data(), {small, displacements}, f32);
    });
}

TEST_F(BadArgument, ExchangeThatDoesNotFitItself) {
  const std::vector<std::size_t> five_six{5, 6}, five_seven{5, 7}, six_six{6, 6}, apart{0, 10};
  expect_invalid(
      {"all_to_all_v on rank 1", "`sent` gives rank 1 itself 6 elements, `received` expects 7"},
      [&](Communicator& c) {
        c.all_to_all_v(a_.data(), {five_six}, b_.data(), {five_seven}, f32);
      });
  expect_invalid({"in place `sent` and `received` must be the same"}, [&](Communicator& c) {
    c.all_to_all_v(a_.data(), {five_six}, a_.data(), {six_six}, f32);
  });
  expect_invalid({"in place `sent` and `received` must be the same"}, [&](Communicator& c) {
    c.all_to_all_v(a_.data(), {six_six}, a_.data(), {six_six, apart}, f32);
  });
}

TEST_F(BadArgument, PartsThatOverlapTheOtherBuffer) {
  const std::vector<std::size_t> counts{5, 6};
  // In place on rank 1 is output + 5.
  expect_invalid({"all_gather_v on rank 1", "overlap", text_of(a_.data() + 5).c_str()},
                 [&](Communicator& c) { c.all_gather_v(a_.data(), a_.data(), {counts}, f32); });
  expect_invalid({"reduce_scatter_v on rank 1", "overlap"}, [&](Communicator& c) {
    c.reduce_scatter_v(a_.data(), a_.data() + 4, {counts}, f32, sum);
  });
  expect_invalid({"scatter on rank 1", "overlap"},
                 [&](Communicator& c) { c.scatter(a_.data(), a_.data(), 100, f32, 1); });
  expect_invalid({"gather on rank 1", "overlap"},
                 [&](Communicator& c) { c.gather(a_.data(), a_.data(), 100, f32, 1); });
}

TEST_F(BadArgument, ScaleThatTheTypeCannotHold) {
  for (const double scale : {-1.0, 256.0, 1e300})
    expect_invalid({"all_reduce on rank 1: `scale` = ", "is no value of u8"}, [&](Communicator& c) {
      c.all_reduce(a_.data(), b_.data(), 7, DataType::u8, ReduceOp::premul_sum, {.scale = scale});
    });
}

TEST_F(BadArgument, CountThatNoMemoryHolds) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t count : {most, most / 4, most / 4 + 2, most / 8})
    expect_invalid({"`count` = ", fmt::format("{}", count).c_str(), "more than any memory holds",
                    "elements of f32 for 2 ranks"},
                   [&](Communicator& c) { c.all_gather(a_.data(), b_.data(), count, f32); });
}

TEST_F(BadArgument, AlgorithmThatTheCollectiveLacks) {
  const auto forced = [](Algorithm a) { return CallOptions{.algorithm = a}; };
  expect_refused(ErrorCode::unsupported,
                 {"all_reduce on rank 1: algorithm direct does not exist for all_reduce",
                  "two_shot, one_shot, ring"},
                 [&](Communicator& c) {
                   c.all_reduce(a_.data(), b_.data(), 7, f32, sum, forced(Algorithm::direct));
                 });
  expect_refused(
      ErrorCode::unsupported,
      {"all_to_all on rank 1: algorithm ring does not exist for all_to_all", "there are: direct"},
      [&](Communicator& c) {
        c.all_to_all(a_.data(), b_.data(), 7, f32, forced(Algorithm::ring));
      });
  expect_refused(ErrorCode::unsupported,
                 {"barrier on rank 1: algorithm one_shot does not exist for barrier"},
                 [&](Communicator& c) { c.barrier(forced(Algorithm::one_shot)); });
  expect_refused(ErrorCode::unsupported, {"all_gather"}, [&](Communicator& c) {
    c.all_gather(a_.data(), b_.data(), 7, f32, forced(static_cast<Algorithm>(77)));
  });
}

TEST_F(BadArgument, WireThatTheCollectiveLacks) {
  const auto forced = [](WireType w) { return CallOptions{.wire = w}; };
  expect_refused(ErrorCode::unsupported,
                 {"barrier on rank 1: wire ll does not exist for barrier", "there are: simple"},
                 [&](Communicator& c) { c.barrier(forced(WireType::ll)); });
  expect_refused(ErrorCode::unsupported, {"all_gather", "there are: simple, ll"},
                 [&](Communicator& c) {
                   c.all_gather(a_.data(), b_.data(), 7, f32, forced(static_cast<WireType>(77)));
                 });
}

/// Refused on a stream as well: at once, and the stream is none the worse.
TEST_F(BadArgument, OnAStream) {
  Stream stream;
  expect_invalid({"`input` is null"}, [&](Communicator& c) {
    c.all_reduce(nullptr, b_.data(), 7, f32, sum, {.stream = &stream});
  });
  stream.synchronize();
}

/// The numbers in a mismatch's text count the calls that were made.
TEST_F(BadArgument, RefusedCallsHaveNoNumber) {
  for (int i = 0; i < 5; ++i)
    expect_invalid({"is null"}, [](Communicator& c) { c.all_to_all(nullptr, nullptr, 1, f32); });
  const auto outcomes = on_threads(2, [&](int rank) {
    std::vector<float> out(10);
    comms_[static_cast<std::size_t>(rank)].all_reduce(
        a_.data(), out.data(), 9u + static_cast<std::size_t>(rank), f32, sum);
  });
  for (const Outcome& o : outcomes) EXPECT_THAT(o.text, StartsWith("call 6: "));
}

TEST(BadPlace, WorldSizeAndRank) {
  const auto refused = [](int size, int rank) {
    return outcome_of([&] { Communicator::create(UniqueId::create(), size, rank); });
  };
  for (const int size : {0, -1, 5000}) {
    const Outcome o = refused(size, 0);
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text,
                AllOf(HasSubstr(fmt::format("`world_size` = {}", size)), HasSubstr("has 1 to ")));
    EXPECT_EQ(outcome_of([&] { Communicator::create_local(size); }).code,
              ErrorCode::invalid_argument);
  }
  for (const int rank : {-1, 3, 4}) {
    const Outcome o = refused(3, rank);
    EXPECT_EQ(o.code, ErrorCode::invalid_argument);
    EXPECT_THAT(o.text, AllOf(HasSubstr(fmt::format("`rank` = {}", rank)),
                              HasSubstr("ranks go from 0 to 2")));
  }
}

/// A job of threads whose ranks announce these sizes and numbers.
std::vector<Outcome> start(const std::vector<std::pair<int, int>>& size_and_rank) {
  const UniqueId id = UniqueId::create();
  return on_threads(static_cast<int>(size_and_rank.size()), [&](int i) {
    const auto [size, rank] = size_and_rank[static_cast<std::size_t>(i)];
    Communicator::create(id, size, rank);
  });
}

TEST(BadPlace, ARankThatIsThereTwice) {
  const auto outcomes = start({{3, 0}, {3, 1}, {3, 1}});
  int named = 0;
  for (const Outcome& o : outcomes) {
    EXPECT_FALSE(o.ok());
    if (o.code == ErrorCode::invalid_argument && o.text.find("rank 1") != std::string::npos)
      ++named;
  }
  EXPECT_GE(named, 1) << testing::PrintToString(outcomes);
}

TEST(BadPlace, RanksThatAnnounceDifferentSizes) {
  const auto outcomes = start({{2, 0}, {3, 1}});
  for (const Outcome& o : outcomes) {
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text, AllOf(HasSubstr("2"), HasSubstr("3"))) << testing::PrintToString(o);
  }
}

/// A rank more than was announced: the announced ones do their work, the other is refused.
TEST(BadPlace, ARankTooMany) {
  const auto outcomes = start({{2, 0}, {2, 1}, {2, 2}});
  EXPECT_TRUE(outcomes[0].ok()) << testing::PrintToString(outcomes[0]);
  EXPECT_TRUE(outcomes[1].ok()) << testing::PrintToString(outcomes[1]);
  EXPECT_EQ(outcomes[2].code, ErrorCode::invalid_argument);
}

TEST(BadUniqueId, DamagedText) {
  const std::string good = UniqueId::create().text();
  EXPECT_EQ(UniqueId::parse(good).text(), good);
  EXPECT_EQ(UniqueId::parse(" " + good + "\n").text(), good);
  const auto refused = [](const std::string& text) {
    const Outcome o = outcome_of([&] { UniqueId::parse(text); });
    EXPECT_EQ(o.code, ErrorCode::invalid_argument) << text;
    return o.text;
  };
  EXPECT_THAT(refused(""), HasSubstr("unique id"));
  EXPECT_THAT(refused("host:1234"), HasSubstr("begins with \"treering-\""));
  EXPECT_THAT(refused(good.substr(0, good.size() - 1)), HasSubstr("cut short"));
  EXPECT_THAT(refused(good + "0"), HasSubstr("instead of"));
  EXPECT_THAT(refused(good.substr(0, good.size() - 1) + "g"), HasSubstr("hexadecimal"));
  for (std::size_t at = std::string("treering-").size(); at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = changed[at] == '0' ? '1' : '0';
    refused(changed);
  }
}

TEST(BadUniqueId, DamagedBytes) {
  const UniqueId good = UniqueId::create();
  EXPECT_EQ(UniqueId::from_bytes(good.bytes().data()).text(), good.text());
  for (std::size_t at = 0; at < UniqueId::size; ++at) {
    auto bytes = good.bytes();
    bytes[at] ^= std::byte{0x40};
    EXPECT_EQ(outcome_of([&] { UniqueId::from_bytes(bytes.data()); }).code,
              ErrorCode::invalid_argument)
        << "byte " << at;
  }
}

/// Joins and makes a call. Argument: "another id" gives rank 1 an id that nobody else has, "one
/// more" makes all wait for a rank that does not come.
const RegisterProgram joins("joins", [](const RankProcess& self) {
  const bool lost = self.argument == "another id" && self.rank == 1;
  Communicator comm = Communicator::create(lost ? UniqueId::create() : self.id,
                                           self.size + (self.argument == "one more"), self.rank);
  self.say(checked_call(comm, all_reduce(self.size, 1000, 1)));
});

TEST(BadUniqueId, NoBytes) {
  const Outcome o = outcome_of([] { UniqueId::from_bytes(nullptr); });
  EXPECT_EQ(o.code, ErrorCode::invalid_argument);
  EXPECT_THAT(o.text, HasSubstr("`bytes128` is null"));
}

TEST(BadRegistration, OfWhatIsNoMemory) {
  std::vector<Communicator> comms = Communicator::create_local(1);
  int data = 0;
  EXPECT_EQ(outcome_of([&] { comms[0].register_memory(nullptr, 10); }).code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(outcome_of([&] { comms[0].register_memory(&data, SIZE_MAX); }).code,
            ErrorCode::invalid_argument);
}

TEST(MissingRanks, AreNamedWhereAnIdIsWrong) {
  Job job("joins", 3, {.argument = "another id", .environment = {"TREERING_START_TIMEOUT=1"}});
  const std::vector<Outcome> outcomes = job.hear_outcomes();
  for (const Outcome& o : outcomes) EXPECT_EQ(o.code, ErrorCode::timeout);
  for (const int r : {0, 2}) {
    const Outcome& o = outcomes[static_cast<std::size_t>(r)];
    EXPECT_THAT(o.ranks, ElementsAre(1)) << testing::PrintToString(o);
    EXPECT_THAT(o.text, HasSubstr("rank 1"));
  }
  EXPECT_THAT(outcomes[1].text, HasSubstr("rank 0")) << testing::PrintToString(outcomes[1]);
}

TEST(MissingRanks, AreNamedWhereTheyDoNotCome) {
  Job job("joins", 2, {.argument = "one more", .environment = {"TREERING_START_TIMEOUT=1"}});
  for (const Outcome& o : job.hear_outcomes()) {
    EXPECT_EQ(o.code, ErrorCode::timeout);
    EXPECT_THAT(o.ranks, ElementsAre(2)) << testing::PrintToString(o);
    EXPECT_THAT(o.text, HasSubstr("rank 2"));
  }
}

struct BadVariable {
  const char* variable;
  const char* value;
  const char* valid;
};

void PrintTo(const BadVariable& bad, std::ostream* out) {
  *out << bad.variable << '=' << bad.value;
}

class BadEnvironment : public testing::TestWithParam<BadVariable> {};

TEST_P(BadEnvironment, IsRefused) {
  const auto [variable, value, valid] = GetParam();
  Job job("joins", 1, {.environment = {fmt::format("{}={}", variable, value)}});
  const Outcome o = job.hear_outcome(0);
  EXPECT_EQ(o.code, ErrorCode::invalid_setting);
  EXPECT_THAT(o.text, AllOf(HasSubstr(fmt::format("{}={}", variable, value)), HasSubstr(valid)));
  EXPECT_EQ(job.wait(0), 3);
}

INSTANTIATE_TEST_SUITE_P(
    Variables, BadEnvironment,
    testing::Values(BadVariable{"TREERING_DEVICE", "tpu", "`host`"},
                    BadVariable{"TREERING_ALGORITHM", "magic", "`ring`"},
                    BadVariable{
                        "TREERING_CHOICE", "all_reduce:magic",
                        "'magic' at letter 12 of the choice: valid for all_reduce: two_shot"},
                    BadVariable{"TREERING_INBOX", "12 parsecs", "a size from 4K"},
                    BadVariable{"TREERING_INBOX", "1K", "a size from 4K"},
                    BadVariable{"TREERING_SLOT", "-1", "a size"},
                    BadVariable{"TREERING_BLOCKS", "513", "0 to 512"},
                    BadVariable{"TREERING_ARENA", "1M", "a size from 64M"},
                    BadVariable{"TREERING_HOST_THREADS", "0", "1 to 1024"},
                    BadVariable{"TREERING_START_TIMEOUT", "soon", "1 to 86400"},
                    BadVariable{"TREERING_LOG", "loud", "`debug`"}),
    [](const auto& tested) {
      std::string text;
      for (const char c : fmt::format("{}_{}", tested.param.variable, tested.param.value))
        text += std::isalnum(c) != 0 ? c : '_';
      return text;
    });

/// A setting that must agree and does not: every rank gets an error that names rank and setting.
struct Difference {
  const char* variable;
  const char* value;  ///< of rank 1
  const char* named;
};

void PrintTo(const Difference& d, std::ostream* out) { *out << d.variable << '=' << d.value; }

class SettingsDiffer : public testing::TestWithParam<Difference> {};

TEST_P(SettingsDiffer, IsAnErrorOnAllRanks) {
  const auto [variable, value, named] = GetParam();
  Job job("joins", 3,
          {.environment = {"TREERING_START_TIMEOUT=20"}, .environment_of = [&](int rank) {
             return rank == 1 ? std::vector{fmt::format("{}={}", variable, value)}
                              : std::vector<std::string>{};
           }});
  for (int r = 0; r < 3; ++r) {
    const Outcome o = job.hear_outcome(r);
    EXPECT_EQ(o.code, ErrorCode::mismatch) << testing::PrintToString(o);
    EXPECT_THAT(o.text, AllOf(HasSubstr(named), HasSubstr("rank 1 has"))) << "rank " << r;
    EXPECT_THAT(o.ranks, ElementsAre(1));
    EXPECT_EQ(job.wait(r), 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SettingsDiffer,
    testing::Values(Difference{"TREERING_INBOX", "1M", "TREERING_INBOX = 1048576"},
                    Difference{"TREERING_SLOT", "4K", "TREERING_SLOT = 4096"},
                    Difference{"TREERING_BLOCKS", "3", "TREERING_BLOCKS"},
                    Difference{"TREERING_ALGORITHM", "ring", "TREERING_ALGORITHM"},
                    Difference{"TREERING_CHOICE", "all_reduce:ring", "TREERING_CHOICE"},
                    Difference{"TREERING_DETERMINISTIC", "1", "TREERING_DETERMINISTIC"}),
    [](const auto& tested) { return std::string(tested.param.variable); });

/// Memory for them would be taken at the first call, and much more than the inbox.
TEST(LargeSlots, AreRefusedWhereTheInboxHasNoRoom) {
  Job job("joins", 3, {.environment = {"TREERING_SLOT=1G"}});
  for (int r = 0; r < 3; ++r) {
    const Outcome o = job.hear_outcome(r);
    EXPECT_EQ(o.code, ErrorCode::invalid_setting) << testing::PrintToString(o);
    EXPECT_THAT(o.text, AllOf(HasSubstr("TREERING_SLOT=1073741824"), HasSubstr("TREERING_INBOX")));
    EXPECT_EQ(job.wait(r), 3);
  }
}

/// Settings that may differ.
TEST(SettingsMayDiffer, WhereOnlyOneProcessIsConcerned) {
  Job job("joins", 2, {.environment_of = [](int rank) {
            return rank == 0 ? std::vector<std::string>{"TREERING_ARENA=1G", "TREERING_LOG=error"}
                             : std::vector<std::string>{"TREERING_ARENA=2G"};
          }});
  job.expect_all("");
}

}  // namespace
}  // namespace treering::test
