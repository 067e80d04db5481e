// Messages between two ranks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ranks/team.hpp"
#include "tests/ranks/threads.hpp"

namespace treering::test {
namespace {

TEST(PointToPoint, Thin) {
  for (const bool reg : {false, true})
    for (const std::size_t count : {0, 1, 24, 25, 2048, 2049, 1'000'000}) {
      Team team(2);
      Buffer a(count + 1), b(count + 1);
      std::vector<std::byte> pa(count + 1), pb(count + 1);
      std::byte* from = reg ? a.as<std::byte>() : pa.data();
      std::byte* to = reg ? b.as<std::byte>() : pb.data();
      for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
      Message got{};
      team.each([&](Communicator& comm, const CallOptions& how) {
        if (comm.rank() == 0) comm.send(from, count, DataType::u8, 1, 5, how);
        if (comm.rank() == 1)
          comm.exchange({Transfer::receive(to, count, DataType::u8, any_source, 5, &got)}, how);
      });
      EXPECT_EQ(got.source, 0);
      EXPECT_EQ(got.tag, 5);
      EXPECT_EQ(got.count, count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(from[i], to[i]);
    }
}

}  // namespace
}  // namespace treering::test
