#pragma once

// The floating-point types of 8 and 16 bits to and from f32. Integer arithmetic, so that every
// machine gets the same bits. It works on 32-bit lanes (a scalar or a vector) that hold the bits of
// the narrow type at their lower end.
//
//     f8e4m3  s eeee mmm                  exponent bias 7, no infinity, NaN is 1111 111
//     f8e5m2  s eeeee mm                  exponent bias 15: the upper half of an f16
//     f16     s eeeee mmmmmmmmmm          exponent bias 15
//     bf16    s eeeeeeee mmmmmmm          exponent bias 127: the upper half of an f32
//     f32     s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm
//
// Rounds to nearest, ties to even; subnormals are exact; what is too large becomes infinity, or NaN
// where there is none; a NaN stays one and becomes quiet. Right also in threads that flush
// subnormal f32 to zero.

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "kernels/ops/operators.hpp"

namespace treering {

/// Formats whose range is a part of f32's. Without infinities their code is one more finite number's,
/// but for a fraction of ones, the NaN.
template <int exponent_bits, int fraction_bits, bool infinities>
struct SmallFloat {
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr int excess = 23 - fraction_bits;  ///< fraction bits that f32 has more
  static constexpr std::uint32_t sign_bit = 1u << (exponent_bits + fraction_bits);
  static constexpr std::uint32_t exponents = sign_bit - (1u << fraction_bits);
  static constexpr std::uint32_t largest_code = sign_bit - 1;
  static constexpr std::uint32_t quiet_bit = 1u << (fraction_bits - 1);
  /// From here on a magnitude (f32 bits) cannot be rounded within the format: 2^(bias + 1), or, as
  /// a number, the NaN's code.
  static constexpr std::uint32_t overflow =
      (infinities ? exponents << excess : largest_code << excess) + ((127u - bias) << 23);

  template <class Bits>
  TREERING_ARITHMETIC static LanesOf<Bits, float> widen(Bits bits) {
    using Float = LanesOf<Bits, float>;
    const Bits sign = (bits & sign_bit) << (31 - exponent_bits - fraction_bits);
    const Bits code = bits & largest_code;
    const Bits magnitude = code << excess;  // at f32's places, the bias still the format's
    const Bits normal = magnitude + ((127u - bias) << 23);
    // With the exponent of the smallest normal number a subnormal reads that number + its value.
    constexpr std::uint32_t smallest = (128u - bias) << 23;
    const Bits subnormal =
        bits_as<Bits>(bits_as<Float>(magnitude + smallest) - bits_as<float>(smallest));
    const Bits finite = magnitude < (1u << 23) ? subnormal : normal;
    if constexpr (infinities) {
      const Bits infinity = magnitude + ((255u << 23) - (exponents << excess));
      const Bits nan = infinity | 0x00400000u;
      const Bits special = code > exponents ? nan : infinity;
      return bits_as<Float>(sign | (code < exponents ? finite : special));
    } else {
      const Bits nan = Bits{} + 0x7fc00000u;
      return bits_as<Float>(sign | (code < largest_code ? finite : nan));
    }
  }

  template <class Float>
  TREERING_ARITHMETIC static BitsOf<Float> narrow(Float value) {
    using Bits = BitsOf<Float>;
    const Bits bits = bits_as<Bits>(value);
    const Bits sign = (bits >> (31 - exponent_bits - fraction_bits)) & sign_bit;
    const Bits magnitude = bits & 0x7fffffffu;
    const Bits odd = (magnitude >> excess) & 1u;
    constexpr std::uint32_t below_half = (1u << (excess - 1)) - 1;
    const Bits normal =  // may round up to what comes after the largest number
        (magnitude + below_half + odd - ((127u - bias) << 23)) >> excess;
    // The last place of this number is that of the format's subnormals: adding it rounds to them.
    constexpr std::uint32_t coarse = static_cast<std::uint32_t>(151 - bias - fraction_bits) << 23;
    const Bits subnormal =
        bits_as<Bits>(bits_as<Float>(magnitude) + bits_as<float>(coarse)) - coarse;
    const Bits finite = magnitude < ((128u - bias) << 23) ? subnormal : normal;
    if constexpr (infinities) {
      const Bits infinity = Bits{} + exponents;
      const Bits nan = ((magnitude >> excess) & (quiet_bit - 1)) | exponents | quiet_bit;
      const Bits special = magnitude > (255u << 23) ? nan : infinity;
      return sign | (magnitude < overflow ? finite : special);
    } else {
      return sign | (magnitude < overflow ? finite : Bits{} + largest_code);
    }
  }
};

struct Float8E4M3 : SmallFloat<4, 3, false> {};

struct Float16 : SmallFloat<5, 10, true> {
#ifdef __CUDA_ARCH__
  // One instruction each, instead of fifteen, and the same bits, but for a NaN's payload.
  TREERING_ARITHMETIC static float widen(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<std::uint16_t>(bits)));
  }
  TREERING_ARITHMETIC static std::uint32_t narrow(float value) {
    return __half_as_ushort(__float2half_rn(value));
  }
#endif
};

struct Float8E5M2 : SmallFloat<5, 2, true> {
#ifdef __CUDA_ARCH__
  TREERING_ARITHMETIC static float widen(std::uint32_t bits) { return Float16::widen(bits << 8); }
#endif
};

struct BFloat16 {
  template <class Bits>
  TREERING_ARITHMETIC static LanesOf<Bits, float> widen(Bits bits) {
    using Float = LanesOf<Bits, float>;
    return bits_as<Float>(bits << 16);
  }

  template <class Float>
  TREERING_ARITHMETIC static BitsOf<Float> narrow(Float value) {
    using Bits = BitsOf<Float>;
    const Bits bits = bits_as<Bits>(value);
    const Bits odd = (bits >> 16) & 1u;
    const Bits nan = bits | 0x00400000u;
    return (value != value ? nan : bits + 0x7fffu + odd) >> 16;
  }
};

}  // namespace treering
