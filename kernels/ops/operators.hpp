#pragma once

// The arithmetic of reductions: one source for scalars (CUDA threads, fibers) and for the vector
// types of GCC and clang (host folds, see host/vectors.hpp), on which the same operators work lane
// by lane.
//
//   sum, prod   integers wrap
//   min, max    IEEE 754-2019 minimum and maximum: a NaN wins, and -0 < +0
//   avg         a sum that the last fold divides, integers truncating toward zero
//   premul_sum  a sum; this rank's own source is scaled first, and rounded to the type
//   bit_*       bit by bit

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "treering/types.hpp"

/// Marks arithmetic that must be inlined: it is compiled for several instruction sets, and a
/// function left over from one of them must not be shared with the others.
#ifdef __CUDACC__
#define TREERING_ARITHMETIC __host__ __device__ __forceinline__
#else
#define TREERING_ARITHMETIC [[gnu::always_inline]] inline
#endif

namespace treering {

/// What a type is made of. A scalar is a single lane; host/vectors.hpp adds vectors.
template <class T>
struct Lanes {
  using Scalar = T;
  /// The type with as many lanes of U.
  template <class U>
  using Of = U;
  /// Every lane replaced by f(lane).
  template <class F>
  TREERING_ARITHMETIC static T each(T x, F f) {
    return f(x);
  }
};

template <class T>
using ScalarOf = typename Lanes<T>::Scalar;
template <class T, class U>
using LanesOf = typename Lanes<T>::template Of<U>;

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<ScalarOf<T>>;

/// The unsigned integers as wide as T's lanes.
template <class T>
using BitsOf = LanesOf<
    T, std::conditional_t<sizeof(ScalarOf<T>) == 8, std::uint64_t,
                          std::conditional_t<sizeof(ScalarOf<T>) == 4, std::uint32_t,
                                             std::conditional_t<sizeof(ScalarOf<T>) == 2,
                                                                std::uint16_t, std::uint8_t>>>>;

template <class To, class From>
TREERING_ARITHMETIC To bits_as(From x) {
  return __builtin_bit_cast(To, x);
}

struct Sum {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    if constexpr (is_float<T>)
      return a + b;
    else  // signed overflow is not defined, unsigned wraps
      return bits_as<T>(static_cast<BitsOf<T>>(bits_as<BitsOf<T>>(a) + bits_as<BitsOf<T>>(b)));
  }
};

struct Product {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    if constexpr (is_float<T>) {
      return a * b;
    } else if constexpr (std::is_arithmetic_v<T>) {
      // 16 unsigned bits would be multiplied as a signed int.
      using Wide = std::common_type_t<BitsOf<T>, unsigned>;
      return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
    } else {
      return bits_as<T>(bits_as<BitsOf<T>>(a) * bits_as<BitsOf<T>>(b));
    }
  }
};

struct Minimum {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    const T lesser = a < b ? a : b;
    if constexpr (is_float<T>) {
      // Equal values differ in nothing but the sign of a zero.
      const T either = bits_as<T>(bits_as<BitsOf<T>>(a) | bits_as<BitsOf<T>>(b));
      const T ordered = a == b ? either : lesser;
      const auto unordered = (a != a) | (b != b);
      return unordered ? a + b : ordered;
    } else {
      return lesser;
    }
  }
};

struct Maximum {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    const T greater = a > b ? a : b;
    if constexpr (is_float<T>) {
      const T either = bits_as<T>(bits_as<BitsOf<T>>(a) & bits_as<BitsOf<T>>(b));
      const T ordered = a == b ? either : greater;
      const auto unordered = (a != a) | (b != b);
      return unordered ? a + b : ordered;
    } else {
      return greater;
    }
  }
};

struct BitAnd {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  TREERING_ARITHMETIC static T combine(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
template <class Op>
inline constexpr bool is_bitwise =
    std::is_same_v<Op, BitAnd> || std::is_same_v<Op, BitOr> || std::is_same_v<Op, BitXor>;

/// A sum that finish() may divide.
struct Average : Sum {};
/// A sum with one source that scaled() treats first.
struct PremulSum : Sum {};

/// The quotient, when all are combined: `divisor` is 1 for everything but the end of an avg.
template <class Op, class T>
TREERING_ARITHMETIC T finish(T x, std::int32_t divisor) {
  using Scalar = ScalarOf<T>;
  if constexpr (std::is_same_v<Op, Average>) {
    if (divisor == 1) return x;
    if constexpr (is_float<T>) {
      return x / static_cast<Scalar>(divisor);
    } else {
      // The divisor may exceed what an 8-bit type holds; signed sums need a signed division.
      using Wide = std::common_type_t<Scalar, std::int32_t>;
      return Lanes<T>::each(x, [divisor](Scalar lane) {
        return static_cast<Scalar>(static_cast<Wide>(lane) / static_cast<Wide>(divisor));
      });
    }
  } else {
    return x;
  }
}

/// The product with a scale, given by its bits in the type of the lanes (scale.hpp).
template <class T>
TREERING_ARITHMETIC T scaled(T x, std::uint64_t scale) {
  using Scalar = ScalarOf<T>;
  const auto factor = bits_as<Scalar>(static_cast<BitsOf<Scalar>>(scale));
  return Product::combine(x, Lanes<T>::each(x, [factor](Scalar) { return factor; }));
}

}  // namespace treering
