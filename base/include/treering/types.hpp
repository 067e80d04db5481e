#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "treering/export.hpp"

#ifdef __CUDACC__
#define TREERING_PORTABLE __host__ __device__
#else
/// Marks a function that runs on the host and inside kernels alike.
#define TREERING_PORTABLE
#endif

namespace TREERING_API treering {

/// Type of the elements of a buffer. The values travel between ranks and must not change.
enum class DataType : std::uint8_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  boolean,  ///< one byte: any nonzero is true; results of reductions are 0 or 1
  f8e4m3,   ///< OCP E4M3, the "fn" kind: no infinity, at most 448
  f8e5m2,   ///< OCP E5M2
  f16,
  bf16,
  f32,
  f64
};
inline constexpr int data_types = 15;

/// How elements of different ranks are combined (docs/numerics.md).
enum class ReduceOp : std::uint8_t {
  sum,
  prod,
  min,
  max,
  avg,
  premul_sum,  ///< the sum of every rank's elements times that rank's own scale
  bit_and,
  bit_or,
  bit_xor
};
inline constexpr int reduce_ops = 9;

/// What a call does. point_to_point, messages between two ranks, is not counted among the
/// collectives.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  reduce_scatter_v,
  all_gather,
  all_gather_v,
  all_to_all,
  all_to_all_v,
  broadcast,
  reduce,
  gather,
  scatter,
  barrier,
  point_to_point
};
inline constexpr int collectives = 12;

/// The same with parts of one size: what a collective whose parts may be uneven does otherwise.
TREERING_PORTABLE constexpr Collective even(Collective collective) {
  switch (collective) {
    case Collective::reduce_scatter_v:
      return Collective::reduce_scatter;
    case Collective::all_gather_v:
      return Collective::all_gather;
    case Collective::all_to_all_v:
      return Collective::all_to_all;
    default:
      return collective;
  }
}

/// True for collectives that combine elements with an operator.
TREERING_PORTABLE constexpr bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         even(collective) == Collective::reduce_scatter;
}

/// True for collectives in which one rank, the root, gives or gets.
TREERING_PORTABLE constexpr bool has_root(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce ||
         collective == Collective::gather || collective == Collective::scatter;
}

/// How a call does it.
enum class Algorithm : std::uint8_t {
  ring,
  tree,
  one_shot,
  two_shot,
  direct,
  dissemination,
  pairwise
};
inline constexpr int algorithms = 7;

/// How a message travels from one rank to another (docs/wires.md).
enum class WireType : std::uint8_t {
  simple,  ///< a slot, then a flag that says that it is complete
  ll       ///< "low latency": a flag beside every four bytes; for short messages
};
inline constexpr int wire_types = 2;

/// True if there are kernels of a collective for a type of wire: those that move data have all. Messages between two
/// ranks have lanes of their own, which are simple.
TREERING_PORTABLE constexpr bool has_wire(Collective collective, WireType wire) {
  if (wire == WireType::simple) return true;
  return wire == WireType::ll && collective != Collective::barrier &&
         collective != Collective::point_to_point;
}

/// True for collectives in which nobody knows how much the others move.
TREERING_PORTABLE constexpr bool has_secret_sizes(Collective collective) {
  return collective == Collective::all_to_all_v;
}

/// Bytes of one element.
TREERING_PORTABLE constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
    case DataType::boolean:
    case DataType::f8e4m3:
    case DataType::f8e5m2:
      return 1;
    case DataType::u16:
    case DataType::i16:
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::u32:
    case DataType::i32:
    case DataType::f32:
      return 4;
    default:
      return 8;
  }
}

/// True for the floating-point types, down to 8 bits.
TREERING_PORTABLE constexpr bool is_floating_point(DataType type) {
  return type >= DataType::f8e4m3;
}

TREERING_PORTABLE constexpr bool is_signed_integer(DataType type) {
  return type == DataType::i8 || type == DataType::i16 || type == DataType::i32 ||
         type == DataType::i64;
}

/// True if elements of this type can be combined by this operator: bits belong to integers and
/// booleans, and booleans have neither averages nor scales.
TREERING_PORTABLE constexpr bool applies(ReduceOp op, DataType type) {
  switch (op) {
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
      return !is_floating_point(type);
    case ReduceOp::avg:
    case ReduceOp::premul_sum:
      return type != DataType::boolean;
    default:
      return true;
  }
}

/// The names used on the command line, in messages and in JSON: `f32`, `sum`, `all_reduce`, `ring`.
const char* name(DataType) noexcept;
const char* name(ReduceOp) noexcept;
const char* name(Collective) noexcept;
const char* name(Algorithm) noexcept;
const char* name(WireType) noexcept;

/// The names of the operators that apply to a type: `sum, prod, min, max, avg, premul_sum`.
std::string operators_of(DataType);

/// The inverse of name(); the spellings of nccl-tests and torch (`float`, `half`, `int32`,
/// `fp8_e4m3`, `float8_e4m3fn` …) are understood too.
/// Throws Error{invalid_argument} that lists the valid names.
DataType parse_data_type(std::string_view);
ReduceOp parse_reduce_op(std::string_view);
Collective parse_collective(std::string_view);
Algorithm parse_algorithm(std::string_view);
WireType parse_wire_type(std::string_view);

}  // namespace treering
