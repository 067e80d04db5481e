#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#ifdef __CUDACC__
#define TREERING_PORTABLE __host__ __device__
#else
/// Marks a function that runs on the host and inside kernels alike.
#define TREERING_PORTABLE
#endif

namespace treering {

/// Type of the elements of a buffer. The values travel between ranks and must not change.
enum class DataType : std::uint8_t { u8, i8, i32, u32, i64, u64, f16, bf16, f32, f64 };
inline constexpr int data_types = 10;

/// How elements of different ranks are combined.
enum class ReduceOp : std::uint8_t { sum, prod, min, max, avg };
inline constexpr int reduce_ops = 5;

/// What a call does. point_to_point, messages between two ranks, is not counted among the
/// collectives.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  barrier,
  point_to_point
};
inline constexpr int collectives = 5;

/// How a call does it.
enum class Algorithm : std::uint8_t { ring, one_shot, two_shot, direct, dissemination, pairwise };
inline constexpr int algorithms = 6;

/// Bytes of one element.
TREERING_PORTABLE constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
      return 1;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::i32:
    case DataType::u32:
    case DataType::f32:
      return 4;
    default:
      return 8;
  }
}

/// The names used on the command line, in messages and in JSON: `f32`, `sum`, `all_reduce`, `ring`.
const char* name(DataType) noexcept;
const char* name(ReduceOp) noexcept;
const char* name(Collective) noexcept;
const char* name(Algorithm) noexcept;

/// The inverse of name(); nccl-tests' spellings (`float`, `half`, `bfloat16`, `int32` …) are understood too.
/// Throws Error{invalid_argument} that lists the valid names.
DataType parse_data_type(std::string_view);
ReduceOp parse_reduce_op(std::string_view);
Collective parse_collective(std::string_view);
Algorithm parse_algorithm(std::string_view);

}  // namespace treering
