// The names of types, operators, collectives, algorithms and wires, and their parsers. The first text of a
// row is the name; the others are understood, but never printed.

#include "treering/types.hpp"

#include <fmt/format.h>

#include <span>

#include "treering/error.hpp"

namespace treering {
namespace {

template <class T>
struct Names {
  T value;
  const char* texts[4];
};

constexpr Names<DataType> data_type_names[] = {
    {DataType::u8, {"u8", "uint8"}},
    {DataType::i8, {"i8", "int8", "char"}},
    {DataType::u16, {"u16", "uint16"}},
    {DataType::i16, {"i16", "int16", "short"}},
    {DataType::u32, {"u32", "uint32"}},
    {DataType::i32, {"i32", "int32", "int"}},
    {DataType::u64, {"u64", "uint64"}},
    {DataType::i64, {"i64", "int64", "long"}},
    {DataType::boolean, {"bool", "boolean"}},
    {DataType::f8e4m3, {"f8e4m3", "fp8_e4m3", "float8_e4m3fn", "f8e4m3fn"}},
    {DataType::f8e5m2, {"f8e5m2", "fp8_e5m2", "float8_e5m2"}},
    {DataType::f16, {"f16", "float16", "half", "fp16"}},
    {DataType::bf16, {"bf16", "bfloat16"}},
    {DataType::f32, {"f32", "float32", "float", "fp32"}},
    {DataType::f64, {"f64", "float64", "double"}},
};

constexpr Names<ReduceOp> reduce_op_names[] = {
    {ReduceOp::sum, {"sum"}},
    {ReduceOp::prod, {"prod", "product"}},
    {ReduceOp::min, {"min"}},
    {ReduceOp::max, {"max"}},
    {ReduceOp::avg, {"avg"}},
    {ReduceOp::premul_sum, {"premul_sum", "mulsum"}},
    {ReduceOp::bit_and, {"bit_and", "band", "and"}},
    {ReduceOp::bit_or, {"bit_or", "bor", "or"}},
    {ReduceOp::bit_xor, {"bit_xor", "bxor", "xor"}},
};

constexpr Names<Collective> collective_names[] = {
    {Collective::all_reduce, {"all_reduce", "allreduce"}},
    {Collective::reduce_scatter, {"reduce_scatter", "reducescatter"}},
    {Collective::reduce_scatter_v, {"reduce_scatter_v", "reducescatterv"}},
    {Collective::all_gather, {"all_gather", "allgather"}},
    {Collective::all_gather_v, {"all_gather_v", "allgatherv"}},
    {Collective::all_to_all, {"all_to_all", "alltoall"}},
    {Collective::all_to_all_v, {"all_to_all_v", "alltoallv"}},
    {Collective::broadcast, {"broadcast", "bcast"}},
    {Collective::reduce, {"reduce"}},
    {Collective::gather, {"gather"}},
    {Collective::scatter, {"scatter"}},
    {Collective::barrier, {"barrier"}},
    {Collective::point_to_point, {"point_to_point"}},
};

constexpr Names<Algorithm> algorithm_names[] = {
    {Algorithm::ring, {"ring"}},         {Algorithm::tree, {"tree"}},
    {Algorithm::one_shot, {"one_shot"}}, {Algorithm::two_shot, {"two_shot"}},
    {Algorithm::direct, {"direct"}},     {Algorithm::dissemination, {"dissemination"}},
    {Algorithm::pairwise, {"pairwise"}},
};

constexpr Names<WireType> wire_type_names[] = {
    {WireType::simple, {"simple"}},
    {WireType::ll, {"ll"}},
};

template <class T>
const char* name_in(std::span<const Names<T>> table, T value) noexcept {
  for (const auto& row : table)
    if (row.value == value) return row.texts[0];
  return "unknown";
}

template <class T>
T parse(const char* what, std::span<const Names<T>> table, std::string_view text) {
  std::string names, others;
  for (const auto& row : table)
    for (const char* const& candidate : row.texts) {
      if (candidate == nullptr) continue;
      if (candidate == text) return row.value;
      std::string& list = &candidate == row.texts ? names : others;
      list += (list.empty() ? "" : ", ") + std::string(candidate);
    }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("There is no {} '{}'. Valid: {}{}{}.", what, text, names,
                          others.empty() ? "" : "; also ", others));
}

}  // namespace

const char* name(DataType type) noexcept { return name_in<DataType>(data_type_names, type); }
const char* name(ReduceOp op) noexcept { return name_in<ReduceOp>(reduce_op_names, op); }
const char* name(Collective collective) noexcept {
  return name_in<Collective>(collective_names, collective);
}
const char* name(Algorithm algorithm) noexcept {
  return name_in<Algorithm>(algorithm_names, algorithm);
}
const char* name(WireType wire) noexcept { return name_in<WireType>(wire_type_names, wire); }

std::string operators_of(DataType type) {
  std::string names;
  for (const auto& row : reduce_op_names)
    if (applies(row.value, type)) names += (names.empty() ? "" : ", ") + std::string(row.texts[0]);
  return names;
}

DataType parse_data_type(std::string_view text) {
  return parse<DataType>("data type", data_type_names, text);
}
ReduceOp parse_reduce_op(std::string_view text) {
  return parse<ReduceOp>("reduction", reduce_op_names, text);
}
Collective parse_collective(std::string_view text) {
  return parse<Collective>("collective", std::span(collective_names).first(collectives), text);
}
Algorithm parse_algorithm(std::string_view text) {
  return parse<Algorithm>("algorithm", algorithm_names, text);
}
WireType parse_wire_type(std::string_view text) {
  return parse<WireType>("wire", wire_type_names, text);
}

}  // namespace treering
