// Whole calls on a malicious GPU, launched not together but rank by rank, by one thread: nothing in
// the middle may wait for kernels, and a GPU that is too small is reported.

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/exec/device.hpp"
#include "kernels/exec/simt/engine.hpp"
#include "perf/call.hpp"
#include "tests/simt/scenario.hpp"

namespace treering::test {
namespace {

using ::testing::HasSubstr;

constexpr int size = 4;

/// Every kernel, one call behind the other, first on rank 0, then on rank 1 …
class RankByRank : public testing::Test {
 protected:
  static void SetUpTestSuite() { device(); }  // which configures the engine itself
  void TearDown() override { simt::configure({}); }

  static void configure(const simt::Malice& malice) {
    simt::configure({.threads = 3, .patience = std::chrono::milliseconds(100), .malice = malice});
  }
  static simt::Malice big_enough() { return simt::Malice::all(2 * size, size); }

  void launch() {
    for (std::size_t rank = 0; rank < size; ++rank)
      for (const Kernel& kernel : catalog) {
        const Pattern pattern{kernel.collective, DataType::i32, ReduceOp::sum, size, count, 1};
        make_call(ranks_[rank], pattern, inputs_[rank].data(), outputs_[rank].data(),
                  {.stream = &streams_[rank], .algorithm = kernel.algorithm, .wire = kernel.wire});
      }
  }
  std::string error() {
    std::string text;
    for (Stream& stream : streams_) {
      try {
        stream.synchronize();
      } catch (const Error& error) {
        text += error.what();
      }
    }
    return text;
  }

  static constexpr std::size_t count = 300;
  std::vector<std::vector<std::int32_t>> inputs_{size, std::vector<std::int32_t>(count* size)};
  std::vector<std::vector<std::int32_t>> outputs_ = inputs_;
  std::vector<Communicator> ranks_ = (configure(big_enough()), Communicator::create_local(size));
  std::vector<Stream> streams_ = std::vector<Stream>(size);
};

TEST_F(RankByRank, NothingInTheMiddleWaitsForKernels) {
  launch();
  EXPECT_EQ(error(), "");
}

TEST_F(RankByRank, TooFewSlotsAreReported) {
  configure({.slots = 2 * size - 2});  // somebody else's kernels hold two
  launch();
  EXPECT_THAT(error(), HasSubstr("has not begun: no slot is free"));
}

TEST_F(RankByRank, TooFewHardwareQueuesAreReported) {
  configure({.hardware_queues = size - 1});
  launch();
  EXPECT_THAT(error(), HasSubstr("is behind another stream's work in its hardware queue"));
}

}  // namespace
}  // namespace treering::test
