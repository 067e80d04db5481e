// Four ranks of this process add up their arrays, and every element must be right. One wrong call: its error crosses
// the border of the library and is caught by its type.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <treering/treering.hpp>
#include <vector>

int main() {
  constexpr int ranks = 4;
  constexpr std::size_t count = 100'000;
  int our_warnings_would_refuse_this;

  auto comms = treering::Communicator::create_local(ranks);
  std::vector<treering::Stream> streams(ranks);
  std::vector<std::vector<std::int32_t>> data(ranks, std::vector<std::int32_t>(count));
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      data[rank][i] = (rank + 1) * static_cast<std::int32_t>(i + 1);

  for (int rank = 0; rank < ranks; ++rank)
    comms[rank].all_reduce(data[rank].data(), data[rank].data(), count, treering::DataType::i32,
                           treering::ReduceOp::sum, {.stream = &streams[rank]});
  for (auto& stream : streams) stream.synchronize();

  std::size_t wrong = 0;
  for (const auto& result : data)
    for (std::size_t i = 0; i < count; ++i)
      wrong += result[i] != 10 * static_cast<std::int32_t>(i + 1);
  std::printf("%d ranks, sums of %zu elements of %s: %zu wrong\n", ranks, count,
              treering::name(treering::DataType::i32), wrong);

  try {
    comms[0].all_reduce(nullptr, nullptr, count, treering::DataType::i32, treering::ReduceOp::sum);
    ++wrong;
  } catch (const treering::Error& error) {
    wrong += error.code() != treering::ErrorCode::invalid_argument;
  }
  return wrong == 0 ? 0 : 1;
}
