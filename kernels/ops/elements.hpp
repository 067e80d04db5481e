#pragma once

// How elements of each type lie in memory (Stored), in which type they are reduced (Accumulator),
// and which arithmetic a type and an operator ask for.

#include <cstdint>
#include <type_traits>

#include "kernels/ops/narrow_floats.hpp"
#include "kernels/ops/operators.hpp"
#include "treering/types.hpp"

namespace treering {

/// Reduced as it is stored.
template <class T>
struct PlainElement {
  using Stored = T;
  using Accumulator = T;
  TREERING_ARITHMETIC static T widen(T x) { return x; }
  TREERING_ARITHMETIC static T narrow(T x) { return x; }
};

/// Stored as 8 or 16 bits, reduced in f32, by a conversion of narrow_floats.hpp.
template <class Bits, class Conversion>
struct NarrowElement {
  using Stored = Bits;
  using Accumulator = float;
  TREERING_ARITHMETIC static float widen(Bits x) { return Conversion::widen(std::uint32_t{x}); }
  TREERING_ARITHMETIC static Bits narrow(float x) {
    return static_cast<Bits>(Conversion::narrow(x));
  }
};

/// A byte; what is not zero becomes 1.
struct BooleanElement {
  using Stored = std::uint8_t;
  using Accumulator = std::uint8_t;
  template <class T>
  TREERING_ARITHMETIC static T widen(T x) {
    return x != 0 ? T{} + T(1) : T{};
  }
  template <class T>
  TREERING_ARITHMETIC static T narrow(T x) {
    return x;
  }
};

/// In place of Element where whole packs are combined: a bitwise operator does not care where
/// elements end.
template <class Element, class Op>
struct PackElement {
  using Type = Element;
};
template <class T, class Op>
requires(is_bitwise<Op>) struct PackElement<PlainElement<T>, Op> {
  using Type = PlainElement<std::uint32_t>;
};

// with_reduction(type, op, f) calls f with an element type and an operator, such as
// (PlainElement<float>{}, Product{}). What gives the same bits shares them:
//
//     signed and unsigned, where only bits count        as unsigned
//     float sum                                         an average that is not divided
//     boolean sum, max, bit_or; prod, min, bit_and      BitOr; BitAnd, of 0 and 1

template <class F>
TREERING_ARITHMETIC constexpr void with_boolean_reduction(ReduceOp op, F f) {
  switch (op) {
    case ReduceOp::prod:
    case ReduceOp::min:
    case ReduceOp::bit_and:
      return f(BooleanElement{}, BitAnd{});
    case ReduceOp::bit_xor:
      return f(BooleanElement{}, BitXor{});
    default:
      return f(BooleanElement{}, BitOr{});
  }
}

template <class Unsigned, class F>
TREERING_ARITHMETIC constexpr void with_integer_reduction(ReduceOp op, bool is_signed, F f) {
  using U = PlainElement<Unsigned>;
  using S = PlainElement<std::make_signed_t<Unsigned>>;
  switch (op) {
    case ReduceOp::prod:
      return f(U{}, Product{});
    case ReduceOp::min:
      return is_signed ? f(S{}, Minimum{}) : f(U{}, Minimum{});
    case ReduceOp::max:
      return is_signed ? f(S{}, Maximum{}) : f(U{}, Maximum{});
    case ReduceOp::avg:
      return is_signed ? f(S{}, Average{}) : f(U{}, Average{});
    case ReduceOp::premul_sum:
      return f(U{}, PremulSum{});
    case ReduceOp::bit_and:
      return f(U{}, BitAnd{});
    case ReduceOp::bit_or:
      return f(U{}, BitOr{});
    case ReduceOp::bit_xor:
      return f(U{}, BitXor{});
    default:
      return f(U{}, Sum{});
  }
}

template <class Element, class F>
TREERING_ARITHMETIC constexpr void with_float_reduction(ReduceOp op, F f) {
  switch (op) {
    case ReduceOp::prod:
      return f(Element{}, Product{});
    case ReduceOp::min:
      return f(Element{}, Minimum{});
    case ReduceOp::max:
      return f(Element{}, Maximum{});
    case ReduceOp::premul_sum:
      return f(Element{}, PremulSum{});
    default:
      return f(Element{}, Average{});
  }
}

/// The operator applies to the type.
template <class F>
TREERING_ARITHMETIC constexpr void with_reduction(DataType type, ReduceOp op, F f) {
  switch (type) {
    case DataType::u8:
    case DataType::i8:
      return with_integer_reduction<std::uint8_t>(op, type == DataType::i8, f);
    case DataType::u16:
    case DataType::i16:
      return with_integer_reduction<std::uint16_t>(op, type == DataType::i16, f);
    case DataType::u32:
    case DataType::i32:
      return with_integer_reduction<std::uint32_t>(op, type == DataType::i32, f);
    case DataType::u64:
    case DataType::i64:
      return with_integer_reduction<std::uint64_t>(op, type == DataType::i64, f);
    case DataType::boolean:
      return with_boolean_reduction(op, f);
    case DataType::f8e4m3:
      return with_float_reduction<NarrowElement<std::uint8_t, Float8E4M3>>(op, f);
    case DataType::f8e5m2:
      return with_float_reduction<NarrowElement<std::uint8_t, Float8E5M2>>(op, f);
    case DataType::f16:
      return with_float_reduction<NarrowElement<std::uint16_t, Float16>>(op, f);
    case DataType::bf16:
      return with_float_reduction<NarrowElement<std::uint16_t, BFloat16>>(op, f);
    case DataType::f32:
      return with_float_reduction<PlainElement<float>>(op, f);
    case DataType::f64:
      return with_float_reduction<PlainElement<double>>(op, f);
  }
}

}  // namespace treering
