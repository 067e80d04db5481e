#pragma once

// The two 16-bit floating-point types to and from f32. Integer arithmetic, so that every machine
// gets the same bits. It works on 32-bit lanes (a scalar or a vector) that hold the 16 bits in
// their lower half.
//
//     f16   s eeeee mmmmmmmmmm            exponent bias 15
//     bf16  s eeeeeeee mmmmmmm            exponent bias 127: the upper half of an f32
//     f32   s eeeeeeee mmmmmmmmmmmmmmmmmmmmmmm
//
// Rounds to nearest, ties to even; subnormals are exact; a NaN stays one and becomes quiet. Right
// also in threads that flush subnormal f32 to zero.

#include <cstdint>

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include "kernels/ops/operators.hpp"

namespace treering {

struct Float16 {
  template <class Bits>
  TREERING_ARITHMETIC static LanesOf<Bits, float> widen(Bits bits) {
    using Float = LanesOf<Bits, float>;
    const Bits sign = (bits & 0x8000u) << 16;
    const Bits magnitude = (bits & 0x7fffu) << 13;  // at f32's places, the bias still f16's
    const Bits normal = magnitude + (112u << 23);
    // With the exponent of 2^-14 a subnormal reads 2^-14 + its value.
    const Bits subnormal = bits_as<Bits>(bits_as<Float>(magnitude + (113u << 23)) - 0x1p-14f);
    const Bits infinity = magnitude + (224u << 23);
    const Bits nan = infinity | 0x00400000u;
    const Bits finite = magnitude < (1u << 23) ? subnormal : normal;
    const Bits special = magnitude > (31u << 23) ? nan : infinity;
    return bits_as<Float>(sign | (magnitude < (31u << 23) ? finite : special));
  }

  template <class Float>
  TREERING_ARITHMETIC static BitsOf<Float> narrow(Float value) {
    using Bits = BitsOf<Float>;
    const Bits bits = bits_as<Bits>(value);
    const Bits sign = (bits >> 16) & 0x8000u;
    const Bits magnitude = bits & 0x7fffffffu;
    const Bits odd = (magnitude >> 13) & 1u;
    const Bits normal =
        (magnitude + 0xfffu + odd - (112u << 23)) >> 13;  // may round up to infinity
    // The last place of 0.5f is that of f16's subnormals: adding it rounds to them.
    const Bits subnormal = bits_as<Bits>(bits_as<Float>(magnitude) + 0.5f) - 0x3f000000u;
    const Bits infinity = Bits{} + 0x7c00u;
    const Bits nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
    const Bits finite = magnitude < (113u << 23) ? subnormal : normal;
    const Bits special = magnitude > (255u << 23) ? nan : infinity;
    return sign | (magnitude < (143u << 23) ? finite : special);  // 2^16 and more is infinite
  }

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
