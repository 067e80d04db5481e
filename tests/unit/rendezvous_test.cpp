// Start-up: the invitation, and the exchange among ranks as threads and as processes, with all that
// goes wrong.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/rank_list.hpp"
#include "transport/rendezvous/channel.hpp"
#include "transport/rendezvous/door.hpp"
#include "transport/rendezvous/exchange.hpp"
#include "transport/rendezvous/invitation.hpp"
#include "treering/error.hpp"

namespace treering {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto patience = 60s;  // for what must not time out

// ── invitation ──────────────────────────────────────────────────────────────────────────────

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Invitation, SurvivesBothForms) {
  const Invitation invitation = Invitation::create();
  EXPECT_EQ(Invitation::from_bytes(invitation.bytes()).bytes(), invitation.bytes());
  EXPECT_EQ(Invitation::parse(invitation.text()).bytes(), invitation.bytes());
  EXPECT_EQ(Invitation::parse(" \t" + invitation.text() + "\r\n").bytes(), invitation.bytes());
  std::string upper = invitation.text();
  for (std::size_t i = 9; i < upper.size(); ++i)
    upper[i] = static_cast<char>(std::toupper(upper[i]));
  EXPECT_EQ(Invitation::parse(upper).bytes(), invitation.bytes());
}

TEST(Invitation, IsUnique) {
  std::set<std::string> texts, names;
  for (int i = 0; i < 1000; ++i) {
    const Invitation invitation = Invitation::create();
    texts.insert(invitation.text());
    names.insert(invitation.socket_name());
  }
  EXPECT_EQ(texts.size(), 1000u);
  EXPECT_EQ(names.size(), 1000u);
}

TEST(Invitation, BelongsToItsWords) {
  const Invitation one = Invitation::derive("job 1"), other = Invitation::derive("job 2");
  EXPECT_EQ(one.bytes(), Invitation::derive("job 1").bytes());
  EXPECT_EQ(Invitation::parse(one.text()).bytes(), one.bytes());
  EXPECT_NE(one.socket_name(), other.socket_name());
  EXPECT_FALSE(std::ranges::equal(one.secret(), other.secret()));
  // Keyed BLAKE2b, by Python's hashlib, behind version and checksum.
  EXPECT_EQ(one.text().substr(9 + 16),
            "33b075b6aa29909eeb5e66e24fb9d71b23ea7fc43bc97bcbea967b0225fd9d15b2b045dd6469fe6ceff7f7"
            "4c4763dd44");
}

TEST(Invitation, KeepsItsSecretOutOfTheName) {
  const Invitation invitation = Invitation::create();
  const std::string text = invitation.text(), name = invitation.socket_name();
  EXPECT_EQ(text.substr(9 + 16, 32), name.substr(9));  // the name follows version and checksum
  EXPECT_EQ(name.find(text.substr(9 + 48, 16)), std::string::npos);
}

TEST(Invitation, NoticesAChangeOfAnyByte) {
  const Invitation invitation = Invitation::create();
  for (std::size_t i = 0; i < Invitation::size; ++i)
    for (unsigned flip : {1u, 0x80u, 0xffu}) {
      auto bytes = invitation.bytes();
      bytes[i] ^= static_cast<std::byte>(flip);
      EXPECT_THAT(refusal([&] { Invitation::from_bytes(bytes); }), HasSubstr("no valid unique id"))
          << i;
    }
}

TEST(Invitation, NoticesAChangeOfAnyCharacter) {
  const std::string text = Invitation::create().text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    EXPECT_NE(refusal([&] { Invitation::parse(changed); }), "accepted") << i;
  }
}

TEST(Invitation, SaysWhatIsWrong) {
  const auto bytes = Invitation::create().bytes();
  const std::string text = Invitation::create().text();
  const auto part = std::span(bytes).first(100);
  EXPECT_THAT(refusal([&] { Invitation::from_bytes(part); }),
              HasSubstr("100 bytes instead of 128"));
  EXPECT_THAT(refusal([&] { Invitation::from_bytes({}); }), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal([&] { Invitation::parse(""); }), HasSubstr("begins with \"treering-\""));
  EXPECT_THAT(refusal([&] { Invitation::parse(" \n "); }), HasSubstr("begins with"));
  EXPECT_THAT(refusal([&] { Invitation::parse("tcp://host"); }), HasSubstr("\"tcp://hos\""));
  EXPECT_THAT(refusal([&] { Invitation::parse(text.substr(0, 50)); }), HasSubstr("50 characters"));
  EXPECT_THAT(refusal([&] { Invitation::parse(text + "0"); }), HasSubstr("122 characters"));
  std::string odd = text;
  odd[20] = 'x';
  EXPECT_THAT(refusal([&] { Invitation::parse(odd); }), HasSubstr("character 21 "));
  auto versioned = bytes;
  versioned[8] = std::byte{7};
  EXPECT_THAT(refusal([&] { Invitation::from_bytes(versioned); }), HasSubstr("version is 7"));
  auto changed = bytes;
  changed[127] = std::byte{1};
  EXPECT_THAT(refusal([&] { Invitation::from_bytes(changed); }), HasSubstr("checksum"));
}

TEST(RankList, IsShort) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({2, 5}), "ranks 2, 5");
  EXPECT_EQ(rank_list({0, 1}), "ranks 0, 1");
  EXPECT_EQ(rank_list({0, 1, 2, 5, 7, 8, 9, 10}), "ranks 0–2, 5, 7–10");
}

// ── ranks as threads ────────────────────────────────────────────────────────────────────────

using Body = std::function<void(Exchange&)>;

struct Start {
  int world_size, rank;
};

/// Runs each start in a thread of its own; returns the Error of each, if it threw one.
std::vector<std::optional<Error>> run(const std::vector<Start>& starts,
                                      std::chrono::milliseconds timeout, const Body& body = {},
                                      const Invitation& invitation = Invitation::create()) {
  std::vector<std::optional<Error>> errors(starts.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < starts.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        Exchange exchange =
            Exchange::join(invitation, starts[i].world_size, starts[i].rank, timeout);
        if (body) body(exchange);
      } catch (const Error& error) {
        errors[i] = error;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

std::vector<Start> world(int size) {
  std::vector<Start> starts;
  for (int rank = size; rank-- > 0;) starts.push_back({size, rank});  // rank 0 comes last
  return starts;
}

/// All threw, and the same.
void expect_same(const std::vector<std::optional<Error>>& errors, ErrorCode code,
                 const std::string& part, const std::vector<int>& ranks) {
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), code) << error->what();
    EXPECT_THAT(error->what(), HasSubstr(part));
    EXPECT_EQ(error->ranks(), ranks);
    EXPECT_STREQ(error->what(), errors[0]->what());
  }
}

void expect_none(const std::vector<std::optional<Error>>& errors) {
  for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
}

std::vector<std::byte> words_of(int rank, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(rank) * 37 + i * 11 + 1);
  return bytes;
}

void everything(Exchange& exchange) {
  const int n = exchange.size(), rank = exchange.rank();
  for (int round = 0; round < 3; ++round) {
    const auto all =
        exchange.all_gather(words_of(rank, static_cast<std::size_t>(rank * 7 + round)));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(n));
    for (int r = 0; r < n; ++r)
      EXPECT_EQ(all[static_cast<std::size_t>(r)],
                words_of(r, static_cast<std::size_t>(r * 7 + round)));
    exchange.barrier();
  }
}

class ExchangeOf : public testing::TestWithParam<int> {};

TEST_P(ExchangeOf, ThreadsGathersAndWaits) {
  expect_none(run(world(GetParam()), patience, everything));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExchangeOf, testing::Values(1, 2, 3, 8, 300));

TEST(Exchange, CarriesMuchMoreThanASocketHolds) {
  expect_none(run(world(3), patience, [](Exchange& exchange) {
    const auto all = exchange.all_gather(words_of(exchange.rank(), 3'000'000));
    for (int r = 0; r < 3; ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], words_of(r, 3'000'000));
  }));
}

TEST(Exchange, ABarrierWaitsForAll) {
  std::atomic<int> came{0};
  expect_none(run(world(8), patience, [&](Exchange& exchange) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      exchange.barrier();
      EXPECT_GE(came, 8 * round);
      exchange.barrier();
    }
  }));
}

TEST(Exchange, StartsManyAtOnce) {
  std::vector<std::thread> jobs;
  for (int job = 0; job < 24; ++job)
    jobs.emplace_back([] { expect_none(run(world(4), patience, everything)); });
  for (std::thread& job : jobs) job.join();
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST(Exchange, AnIdServesAgainOnceTheStartIsOverAndNothingIsLeft) {
  const Invitation invitation = Invitation::create();
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 50; ++i) expect_none(run(world(3), patience, everything, invitation));
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Exchange, TheSocketDisappearsAfterStartUp) {
  const Invitation invitation = Invitation::create();
  const auto listed = [&] {
    std::ifstream sockets("/proc/net/unix");
    std::string line;
    int listening = 0;
    while (std::getline(sockets, line))
      listening += line.find(invitation.socket_name()) != std::string::npos &&
                   line.find(" 00010000 ") != std::string::npos;  // flag: accepts connections
    return listening;
  };
  std::thread first([&] { Exchange::join(invitation, 2, 0, patience).barrier(); });
  while (listed() == 0) std::this_thread::yield();
  Exchange exchange = Exchange::join(invitation, 2, 1, patience);
  EXPECT_EQ(listed(), 0);
  exchange.barrier();
  first.join();
}

// ── descriptors ─────────────────────────────────────────────────────────────────────────────

/// A memfd with a rank's number in it.
UniqueFd marked(int rank) {
  UniqueFd file(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), &rank, sizeof rank), static_cast<ssize_t>(sizeof rank));
  return file;
}
int mark_of(const UniqueFd& file) {
  int rank = -1;
  return pread(file.get(), &rank, sizeof rank, 0) == sizeof rank ? rank : -1;
}

void pass_descriptors(Exchange& exchange, int every) {
  const UniqueFd mine = exchange.rank() % every == 0 ? marked(exchange.rank()) : UniqueFd();
  const auto all = exchange.all_gather_descriptors(mine.get());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(exchange.size()));
  for (int r = 0; r < exchange.size(); ++r) {
    const UniqueFd& theirs = all[static_cast<std::size_t>(r)];
    ASSERT_EQ(static_cast<bool>(theirs), r % every == 0) << r;
    if (!theirs) continue;
    EXPECT_EQ(mark_of(theirs), r);
    EXPECT_EQ(fcntl(theirs.get(), F_GETFD), FD_CLOEXEC);
    EXPECT_NE(theirs.get(), mine.get());
  }
  exchange.barrier();
}

TEST(Exchange, PassesDescriptors) {
  for (int n : {1, 2, 3, 8})
    expect_none(run(world(n), patience, [](Exchange& exchange) {
      pass_descriptors(exchange, 1);
      pass_descriptors(exchange, 2);
    }));
}

TEST(Exchange, PassesTheSameDescriptorForAll) {
  const UniqueFd shared = marked(77);
  expect_none(run(world(4), patience, [&](Exchange& exchange) {
    for (const UniqueFd& theirs : exchange.all_gather_descriptors(shared.get()))
      EXPECT_EQ(mark_of(theirs), 77);
  }));
}

TEST(Exchange, PassesNoDescriptors) {
  expect_none(run(world(3), patience, [&](Exchange& exchange) {
    for (const UniqueFd& theirs : exchange.all_gather_descriptors(-1)) EXPECT_FALSE(theirs);
  }));
}

// ── ranks as processes ──────────────────────────────────────────────────────────────────────

/// Runs a body in each of `size` processes; returns how each ended (0: well, or as waitpid says).
std::vector<int> run_processes(int size, const std::function<int(int rank)>& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 99;
      try {
        code = body(rank);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(testing::Test::HasFailure() ? 98 : code);
    }
    children.push_back(child);
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    statuses.push_back(status);
  }
  return statuses;
}

int count_of(const std::vector<int>& statuses, int status) {
  return static_cast<int>(std::count(statuses.begin(), statuses.end(), status));
}

TEST(ExchangeOfProcesses, Gathers) {
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(5, [&](int rank) {
    Exchange exchange = Exchange::join(invitation, 5, rank, patience);
    everything(exchange);
    pass_descriptors(exchange, 1);
    return 0;
  });
  EXPECT_EQ(count_of(statuses, 0), 5);
}

TEST(ExchangeOfProcesses, PassesHundredsOfDescriptors) {  // more than the kernel's 253 at a time
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(300, [&](int rank) {
    Exchange exchange = Exchange::join(invitation, 300, rank, patience);
    pass_descriptors(exchange, 1);
    return 0;
  });
  EXPECT_EQ(count_of(statuses, 0), 300);
}

TEST(ExchangeOfProcesses, PassesDescriptorsWithinAUsersLimitOfThoseUnderWay) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user without privileges";
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(40, [&](int rank) {
    const rlimit limit{128, 128};
    setrlimit(RLIMIT_NOFILE, &limit);
    if (setresuid(54321, 54321, 54321) != 0) return 1;
    Exchange exchange = Exchange::join(invitation, 40, rank, patience);
    for (int i = 0; i < 3; ++i) pass_descriptors(exchange, 1);
    return 0;
  });
  EXPECT_EQ(count_of(statuses, 0), 40);
}

TEST(ExchangeOfProcesses, TooFewDescriptorsAreAnErrorOfAll) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors";
#endif
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(4, [&](int rank) {
    Exchange exchange = Exchange::join(invitation, 4, rank, patience);
    exchange.barrier();
    std::vector<UniqueFd> filler;
    if (rank == 2) {
      const rlimit limit{64, 64};
      setrlimit(RLIMIT_NOFILE, &limit);
      do filler.emplace_back(dup(0));
      while (filler.back());
      filler.pop_back();
      filler.pop_back();  // one is left
    }
    try {
      exchange.all_gather_descriptors(2);
      exchange.barrier();
      return 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::system);
      EXPECT_THAT(error.what(), HasSubstr("rank 2: received 1 of 4 descriptors"));
      EXPECT_THAT(error.ranks(), ElementsAre(2));
      return 0;
    }
  });
  EXPECT_EQ(count_of(statuses, 0), 4);
}

TEST(ExchangeOfProcesses, ADeathDuringStartUpIsAnErrorOfAll) {
  for (int victim : {1, 3}) {
    const Invitation invitation = Invitation::create();
    const auto statuses = run_processes(4, [&](int rank) {
      try {
        Exchange exchange = Exchange::join(invitation, 4, rank, patience);
        exchange.barrier();
        if (rank == victim) raise(SIGKILL);
        exchange.barrier();
        return 1;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::peer_lost);
        EXPECT_THAT(error.what(), HasSubstr("rank " + std::to_string(victim) + " ended"));
        EXPECT_THAT(error.ranks(), ElementsAre(victim));
        return 0;
      }
    });
    EXPECT_EQ(count_of(statuses, 0), 3);
  }
}

TEST(ExchangeOfProcesses, TheDeathOfRank0IsAnErrorOfAll) {
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(3, [&](int rank) {
    try {
      Exchange exchange = Exchange::join(invitation, 3, rank, patience);
      if (rank == 0) raise(SIGKILL);
      exchange.barrier();
      return 1;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_lost);
      EXPECT_THAT(error.ranks(), ElementsAre(0));
      return 0;
    }
  });
  EXPECT_EQ(count_of(statuses, 0), 2);
}

// ── what goes wrong ─────────────────────────────────────────────────────────────────────────

TEST(ExchangeErrors, RankOutOfRange) {
  for (int rank : {3, 17, -1})
    expect_same(run({{3, 0}, {3, 1}, {3, rank}}, patience), ErrorCode::invalid_argument,
                "rank " + std::to_string(rank) + " is out of range: there are 3 ranks", {rank});
}

TEST(ExchangeErrors, NoRanks) {
  expect_same(run({{0, 0}}, patience), ErrorCode::invalid_argument, "the number of ranks is 0", {});
}

TEST(ExchangeErrors, RankOutOfRangeWithoutRank0) {
  expect_same(run({{3, 5}}, 50ms), ErrorCode::invalid_argument, "rank 5 is out of range", {5});
}

TEST(ExchangeErrors, TwoOfOneRank) {
  expect_same(run({{4, 0}, {4, 2}, {4, 2}}, patience), ErrorCode::invalid_argument,
              "two processes or threads say that they are rank 2", {2});
}

TEST(ExchangeErrors, TwoRanks0) {
  expect_same(run({{3, 0}, {3, 0}, {3, 1}}, patience), ErrorCode::invalid_argument,
              "two processes or threads say that they are rank 0", {0});
}

TEST(ExchangeErrors, DifferentNumbersOfRanks) {
  expect_same(run({{4, 0}, {4, 1}, {8, 3}}, patience), ErrorCode::mismatch,
              "rank 3 says 8 ranks, rank 0 says 4", {3});
}

TEST(ExchangeErrors, MissingRanksAreNamed) {
  expect_same(run({{6, 0}, {6, 1}, {6, 3}, {6, 4}}, 500ms), ErrorCode::timeout,
              "waited 500 ms for all 6 ranks: ranks 2, 5 have not come", {2, 5});
  expect_same(run({{2, 0}}, 1000ms), ErrorCode::timeout,
              "waited 1 s for all 2 ranks: rank 1 has not come", {1});
}

TEST(ExchangeErrors, Rank0IsMissing) {
  expect_same(run({{2, 1}}, 200ms), ErrorCode::timeout, "rank 1 waited 200 ms for rank 0", {0});
}

TEST(ExchangeErrors, AnotherUniqueId) {
  const Invitation one = Invitation::create(), other = Invitation::create();
  std::vector<std::optional<Error>> first, second;
  std::thread rank0([&] { first = run({{2, 0}}, 200ms, {}, one); });
  second = run({{2, 1}}, 200ms, {}, other);
  rank0.join();
  expect_same(first, ErrorCode::timeout, "rank 1 has not come", {1});
  expect_same(second, ErrorCode::timeout, "is the unique id the same", {0});
}

TEST(ExchangeErrors, AReportedFailureIsEveryones) {
  for (int culprit : {0, 1, 4}) {
    const auto errors = run(world(5), patience, [&](Exchange& exchange) {
      exchange.barrier();
      const Error trouble(ErrorCode::out_of_memory, "cannot map 7 bytes");
      if (exchange.rank() == culprit) exchange.fail(trouble);
      exchange.all_gather({});
    });
    expect_same(errors, ErrorCode::out_of_memory,
                "rank " + std::to_string(culprit) + ": cannot map 7 bytes", {culprit});
  }
}

TEST(ExchangeErrors, StayForever) {
  run(world(3), patience, [&](Exchange& exchange) {
    if (exchange.rank() == 1) exchange.fail(Error(ErrorCode::unsupported, "no", {2}));
    for (int i = 0; i < 3; ++i) try {
        if (i == 0) exchange.barrier();
        if (i == 1) exchange.all_gather({});
        if (i == 2) exchange.all_gather_descriptors(-1);
        ADD_FAILURE();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unsupported);
        EXPECT_THAT(error.ranks(), ElementsAre(2));
      }
  });
}

TEST(ExchangeErrors, ARankThatLeavesIsNamed) {
  const auto errors = run(world(4), patience, [&](Exchange& exchange) {
    exchange.barrier();
    if (exchange.rank() == 3) throw Error(ErrorCode::peer_lost, "left");
    exchange.barrier();
  });
  const std::vector others(errors.begin() + 1, errors.end());  // rank 3 is the first of world()
  expect_same(others, ErrorCode::peer_lost, "rank 3 ended during start-up (barrier)", {3});
}

TEST(ExchangeErrors, ARankThatIsLateIsNamed) {
  std::atomic<int> gave_up{0};
  const auto errors = run(world(4), 300ms, [&](Exchange& exchange) {
    exchange.barrier();
    if (exchange.rank() == 2)
      while (gave_up < 3) std::this_thread::yield();
    try {
      exchange.barrier();
    } catch (const Error&) {
      ++gave_up;
      throw;
    }
  });
  expect_same(errors, ErrorCode::timeout, "waited 300 ms in start-up (barrier) for rank 2", {2});
}

TEST(ExchangeErrors, DifferentOperations) {
  const auto errors = run(world(3), patience, [](Exchange& exchange) {
    if (exchange.rank() == 1)
      exchange.all_gather_descriptors(-1);
    else
      exchange.barrier();
  });
  expect_same(errors, ErrorCode::mismatch,
              "rank 1 is at all_gather_descriptors of its start-up, rank 0 at barrier", {1});
}

// ── visitors that are no rank ───────────────────────────────────────────────────────────────

/// Connects by hand.
Channel connect_by_hand(const Invitation& invitation) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = invitation.socket_name();
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  while (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0)
    std::this_thread::yield();
  Channel channel(std::move(socket));
  channel.trust();
  return channel;
}

SharedPacket packed(const Hello& hello) {
  return pack(Kind::hello, std::as_bytes(std::span(&hello, 1)));
}

/// A good hello whose header announces other things than follow.
SharedPacket with_header(const Invitation& invitation, std::uint32_t descriptors,
                         std::uint64_t bytes) {
  auto packet = std::make_shared<Packet>(*packed(make_hello(invitation, 2, 1)));
  std::memcpy(packet->bytes.data() + 4, &descriptors, sizeof descriptors);
  std::memcpy(packet->bytes.data() + 8, &bytes, sizeof bytes);
  return packet;
}

std::optional<Message> reply_to(Channel channel, const SharedPacket& packet) {
  channel.post(packet);
  const Deadline deadline(patience);
  while (channel.message() == nullptr)
    if (!channel.open() || !serve({&channel, 1}, deadline)) return std::nullopt;
  return channel.take_message();
}

TEST(Strangers, DoNotDisturb) {
  const Invitation invitation = Invitation::create();
  std::vector<std::optional<Error>> errors;
  std::thread rank0([&] { errors = run({{2, 0}}, patience, everything, invitation); });

  Channel silent = connect_by_hand(invitation);
  Hello wrong = make_hello(invitation, 2, 1);
  wrong.secret[31] ^= std::byte{1};
  EXPECT_FALSE(reply_to(connect_by_hand(invitation), packed(wrong)));
  EXPECT_FALSE(reply_to(connect_by_hand(invitation), pack(Kind::barrier, {})));
  EXPECT_FALSE(reply_to(connect_by_hand(invitation), pack(Kind::hello, {})));
  EXPECT_FALSE(
      reply_to(connect_by_hand(invitation), pack(Kind::hello, std::vector<std::byte>(100'000))));
  EXPECT_FALSE(reply_to(connect_by_hand(invitation),
                        pack(Kind::hello, std::vector<std::byte>(200), {0, 1})));
  EXPECT_FALSE(
      reply_to(connect_by_hand(invitation), with_header(invitation, 0, std::uint64_t{1} << 60)));
  EXPECT_FALSE(reply_to(connect_by_hand(invitation), with_header(invitation, 5, sizeof(Hello))));
  connect_by_hand(invitation);  // and leaves

  expect_none(run({{2, 1}}, patience, everything, invitation));
  rank0.join();
  expect_none(errors);
}

TEST(Strangers, OfAnotherUserAreSentAway) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const Invitation invitation = Invitation::create();
  const auto statuses = run_processes(4, [&](int number) {
    if (number < 2) {
      Exchange exchange = Exchange::join(invitation, 2, number, patience);
      exchange.barrier();
      return 0;
    }
    // They may come too late to be sent away in person; in time or not, they do not disturb.
    if (setresuid(54321, 54321, 54321) != 0) return 1;
    try {
      Exchange::join(invitation, 2, 1, 300ms);
      return 2;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::invalid_argument ||
                  error.code() == ErrorCode::timeout);
      return 0;
    }
  });
  EXPECT_EQ(count_of(statuses, 0), 4);
}

TEST(ExchangeErrors, AnotherVersionOfTheLibrary) {
  const Invitation invitation = Invitation::create();
  std::vector<std::optional<Error>> errors;
  std::thread others([&] { errors = run({{3, 0}, {3, 1}}, patience, {}, invitation); });
  Hello hello = make_hello(invitation, 3, 2);
  std::strcpy(hello.version.data(), "9.8.7");
  const auto reply = reply_to(connect_by_hand(invitation), packed(hello));
  others.join();
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->kind, Kind::failed);
  errors.emplace_back(unpack_error(*reply));
  // Rank 1 may come only after rank 0 has given up; then it cannot know.
  if (errors[1] && errors[1]->code() == ErrorCode::timeout) errors.erase(errors.begin() + 1);
  expect_same(errors, ErrorCode::mismatch, "rank 2 uses Treering 9.8.7, rank 0 uses", {2});
}

TEST(ExchangeErrors, ARankThatDiesBeforeAllHaveCome) {
  const Invitation invitation = Invitation::create();
  std::vector<std::optional<Error>> errors;
  std::thread rank0([&] { errors = run({{3, 0}}, patience, {}, invitation); });
  {
    Channel channel = connect_by_hand(invitation);
    channel.post(packed(make_hello(invitation, 3, 2)));
    channel.flush();
  }
  rank0.join();
  expect_same(errors, ErrorCode::peer_lost, "rank 2 ended during start-up", {2});
}

}  // namespace
}  // namespace treering
