// Arrays past 2³¹ and 2³² bytes and elements, which cost hardly any memory: behind their addresses lies one small file
// again and again,
//
//     input    │ file │ file │ file │ file │ file │ …        period: a prime number of pages, so that an index
//     output   █ file │ file █ file │ file █ file …█          that was cut to 32 bits finds other values
//
// but where results are looked at (█: both ends, around 2³¹ and 2³², between parts) the output has memory of its own.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "base/system_error.hpp"
#include "base/unique_fd.hpp"
#include "perf/call.hpp"
#include "plan/choice.hpp"
#include "tests/ranks/cases.hpp"

namespace treering::test {
namespace {

constexpr std::size_t page = 4096, period = 257 * page;
constexpr std::size_t two_to_31 = std::size_t{1} << 31, two_to_32 = std::size_t{1} << 32;
constexpr std::byte poison{0x5a};

UniqueFd file_of(const void* bytes, std::size_t size) {
  UniqueFd file(memfd_create("treering-test", MFD_CLOEXEC));
  if (!file || write(file.get(), bytes, size) != static_cast<ssize_t>(size))
    throw system_error("make a file in memory");
  return file;
}

/// Addresses behind which a file lies again and again.
class Aliased {
 public:
  Aliased(std::size_t bytes, const std::vector<std::byte>& contents, int protection)
      : bytes_(bytes), file_(file_of(contents.data(), period)) {
    // One page more: what is written beyond the end meets poison.
    const std::size_t all = (bytes / page + 2) * page;
    void* reserved =
        mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) throw system_error("reserve addresses");
    begin_ = static_cast<std::byte*>(reserved);
    mapped_ = all;
    for (std::size_t at = 0; at < all; at += period)
      map(at, std::min(period, all - at), protection, MAP_SHARED | MAP_POPULATE, file_.get());
  }
  Aliased(const Aliased&) = delete;
  Aliased& operator=(const Aliased&) = delete;
  ~Aliased() { munmap(begin_, mapped_); }

  std::byte* data() const { return begin_; }
  std::size_t bytes() const { return bytes_; }

  /// Gives some of the addresses poisoned memory of their own.
  void own(std::size_t begin, std::size_t end) {
    map(begin, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    std::memset(begin_ + begin, static_cast<int>(poison), end - begin);
  }

 protected:
  std::size_t mapped() const { return mapped_; }

 private:
  void map(std::size_t at, std::size_t bytes, int protection, int flags, int file) {
    if (mmap(begin_ + at, bytes, protection, flags | MAP_FIXED, file, 0) == MAP_FAILED)
      throw system_error("map a file many times; /proc/sys/vm/max_map_count may be too small");
  }

  std::size_t bytes_, mapped_ = 0;
  UniqueFd file_;
  std::byte* begin_ = nullptr;
};

/// An output, and the places where it is looked at.
class Windows : public Aliased {
 public:
  explicit Windows(std::size_t bytes, std::initializer_list<std::size_t> around)
      : Aliased(bytes, std::vector<std::byte>(period), PROT_READ | PROT_WRITE) {
    for (const std::size_t place : around) {
      if (place > bytes) continue;
      const std::size_t begin = place < half ? 0 : (place - half) / page * page;
      const std::size_t end = std::min((place + half) / page * page, mapped());
      own(begin, end);
      for (std::size_t at = begin; at < end; at += page) pages_.insert(at);
    }
  }

  /// The first index in a window that is not as expected; bytes beyond the end must be poison.
  template <class Expected>
  std::optional<std::size_t> first_wrong(Expected expected) const {
    for (const std::size_t begin : pages_)
      for (std::size_t i = begin; i < begin + page; ++i)
        if (data()[i] != (i < bytes() ? expected(i) : poison)) return i;
    return {};
  }

 private:
  static constexpr std::size_t half = 16 * page;
  std::set<std::size_t> pages_;
};

struct Large {
  Collective collective;
  Algorithm algorithm;
  std::size_t count;  ///< of one part, or of the only one
  bool direct;

  /// Uneven parts are of `count` ± this.
  std::size_t uneven() const { return even(collective) == collective ? 0 : 12'345; }
  std::vector<std::size_t> parts() const { return {count + uneven(), count - uneven()}; }
};

void PrintTo(const Large& large, std::ostream* out) {
  *out << fmt::format("{} {} × {}, {}", name(large.collective), name(large.algorithm), large.count,
                      large.direct ? "direct" : "staged");
}

/// Two ranks, bytes. What a rank's input holds, and what its output must.
class LargeCall {
 public:
  static constexpr int size = 2, root = 1;

  explicit LargeCall(const Large& large) : large_(large), parts_(large.parts()) {
    std::mt19937_64 random(20263);
    for (auto& rank : inputs_) {
      rank.resize(period);
      for (std::byte& x : rank) x = static_cast<std::byte>(random());
    }
  }

  const std::vector<std::byte>& input(int rank) const {
    return inputs_[static_cast<std::size_t>(rank)];
  }
  std::size_t input_bytes(int rank) const {
    switch (even(large_.collective)) {
      case Collective::reduce_scatter:
      case Collective::all_to_all:
        return parts_[0] + parts_[1];
      case Collective::scatter:
        return rank == root ? parts_[0] + parts_[1] : 0;
      case Collective::broadcast:
        return rank == root ? large_.count : 0;
      case Collective::all_gather:
        return part(rank);
      default:
        return large_.count;
    }
  }
  std::size_t output_bytes(int rank) const {
    switch (even(large_.collective)) {
      case Collective::all_gather:
        return parts_[0] + parts_[1];
      case Collective::all_to_all:
        return 2 * part(rank);
      case Collective::gather:
        return rank == root ? parts_[0] + parts_[1] : 0;
      case Collective::reduce:
        return rank == root ? large_.count : 0;
      case Collective::reduce_scatter:
        return part(rank);
      default:
        return large_.count;
    }
  }

  std::byte expected(int rank, std::size_t i) const {
    switch (even(large_.collective)) {
      case Collective::all_reduce:
      case Collective::reduce:
        return sum(i);
      case Collective::reduce_scatter:
        return sum(begin(rank) + i);
      case Collective::broadcast:
        return at(root, i);
      case Collective::scatter:
        return at(root, begin(rank) + i);
      case Collective::all_to_all:
        return i < part(rank) ? at(0, begin(rank) + i) : at(1, begin(rank) + i - part(rank));
      default:
        return i < part(0) ? at(0, i) : at(1, i - part(0));
    }
  }

  void make(Communicator& comm, const void* in, void* out, CallOptions how) const {
    how.algorithm = large_.algorithm;
    constexpr auto u8 = DataType::u8;
    constexpr auto sum = ReduceOp::sum;
    const std::vector<std::size_t> received(size, part(comm.rank()));
    switch (large_.collective) {
      case Collective::all_gather_v:
        return comm.all_gather_v(in, out, {parts_}, u8, how);
      case Collective::reduce_scatter_v:
        return comm.reduce_scatter_v(in, out, {parts_}, u8, sum, how);
      case Collective::all_to_all_v:
        return comm.all_to_all_v(in, {parts_}, out, {received}, u8, how);
      default:
        return make_call(comm, {large_.collective, u8, sum, size, large_.count, 1, root}, in, out,
                         how);
    }
  }

 private:
  std::size_t part(int rank) const { return parts_[static_cast<std::size_t>(rank)]; }
  std::size_t begin(int rank) const { return rank == 0 ? 0 : parts_[0]; }
  std::byte at(int rank, std::size_t i) const { return input(rank)[i % period]; }
  std::byte sum(std::size_t i) const {
    return static_cast<std::byte>(std::to_integer<int>(at(0, i)) + std::to_integer<int>(at(1, i)));
  }

  Large large_;
  std::vector<std::size_t> parts_;
  std::vector<std::byte> inputs_[size];
};

class Larger : public testing::TestWithParam<Large> {};

TEST_P(Larger, IsExact) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP()
      << "ThreadSanitizer's shadow of these addresses is real memory, several times as large";
#endif
  const Large& large = GetParam();
  const LargeCall call(large);
  std::vector<std::unique_ptr<Aliased>> inputs;
  std::vector<std::unique_ptr<Windows>> outputs;
  Team team(LargeCall::size);
  for (int r = 0; r < team.size(); ++r) {
    inputs.push_back(std::make_unique<Aliased>(call.input_bytes(r), call.input(r), PROT_READ));
    const std::size_t bytes = call.output_bytes(r);
    outputs.push_back(std::make_unique<Windows>(
        bytes, std::initializer_list<std::size_t>{0, large.count - large.uneven(),
                                                  large.count + large.uneven(), two_to_31,
                                                  two_to_32, bytes}));
    if (!large.direct) continue;
    EXPECT_TRUE(team[r].register_memory(inputs.back()->data(), inputs.back()->bytes()));
    EXPECT_TRUE(team[r].register_memory(outputs.back()->data(), outputs.back()->bytes()));
  }
  team.each([&](Communicator& comm, const CallOptions& how) {
    const auto r = static_cast<std::size_t>(comm.rank());
    call.make(comm, inputs[r]->data(), outputs[r]->data(), how);
  });
  for (int r = 0; r < team.size(); ++r) {
    const auto wrong = outputs[static_cast<std::size_t>(r)]->first_wrong(
        [&](std::size_t i) { return call.expected(r, i); });
    EXPECT_FALSE(wrong) << "rank " << r << ", element " << *wrong;
    EXPECT_EQ(team[r].last_call().direct, large.direct);
  }
}

constexpr std::size_t past_32 = two_to_32 + 70'001, past_31 = two_to_31 + 70'001;

/// Each collective, and all-reduce in every way; where ranks have parts, all of them together are past 2³² bytes.
std::vector<Large> some_of_each_collective() {
  using enum Algorithm;
  return {{Collective::all_reduce, two_shot, past_32, true},
          {Collective::all_reduce, two_shot, past_31, false},
          {Collective::all_reduce, one_shot, past_31, false},
          {Collective::all_reduce, ring, past_32, false},
          {Collective::all_reduce, tree, past_32, false},
          {Collective::reduce_scatter, ring, past_31, false},
          {Collective::reduce_scatter_v, direct, past_31, true},
          {Collective::all_gather, ring, past_31, false},
          {Collective::all_gather_v, direct, past_31, true},
          {Collective::all_to_all, direct, past_31, true},
          {Collective::all_to_all_v, direct, past_31, false},
          {Collective::broadcast, direct, past_32, true},
          {Collective::reduce, tree, past_31, false},
          {Collective::gather, direct, past_31, true},
          {Collective::scatter, direct, past_31, false}};
}

/// Every algorithm, staged and, where it can, direct; single parts are past 2³² bytes.
std::vector<Large> large_calls() {
  std::vector<Large> all = some_of_each_collective();
  if (!everything()) return all;
  for (int i = 0; i < collectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (collective == Collective::barrier) continue;
    for (const Algorithm algorithm : algorithms_of(collective))
      for (const bool direct : {false, true})
        if (!direct || (algorithm != Algorithm::ring && algorithm != Algorithm::tree))
          all.push_back({collective, algorithm, past_32, direct});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Arrays, Larger, testing::ValuesIn(large_calls()));

}  // namespace
}  // namespace treering::test
