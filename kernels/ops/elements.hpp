#pragma once

// How elements of each type lie in memory (Stored) and in which type they are reduced
// (Accumulator).

#include <cstdint>

#include "kernels/ops/float16.hpp"
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

/// Stored as 16 bits, reduced in f32, by a conversion of float16.hpp.
template <class Conversion>
struct HalfElement {
  using Stored = std::uint16_t;
  using Accumulator = float;
  TREERING_ARITHMETIC static float widen(std::uint16_t x) {
    return Conversion::widen(std::uint32_t{x});
  }
  TREERING_ARITHMETIC static std::uint16_t narrow(float x) {
    return static_cast<std::uint16_t>(Conversion::narrow(x));
  }
};

/// Calls f with the element type, such as PlainElement<float>{}.
template <class F>
TREERING_ARITHMETIC constexpr void with_element(DataType type, F f) {
  switch (type) {
    case DataType::u8:
      return f(PlainElement<std::uint8_t>{});
    case DataType::i8:
      return f(PlainElement<std::int8_t>{});
    case DataType::i32:
      return f(PlainElement<std::int32_t>{});
    case DataType::u32:
      return f(PlainElement<std::uint32_t>{});
    case DataType::i64:
      return f(PlainElement<std::int64_t>{});
    case DataType::u64:
      return f(PlainElement<std::uint64_t>{});
    case DataType::f16:
      return f(HalfElement<Float16>{});
    case DataType::bf16:
      return f(HalfElement<BFloat16>{});
    case DataType::f32:
      return f(PlainElement<float>{});
    case DataType::f64:
      return f(PlainElement<double>{});
  }
}

}  // namespace treering
