#pragma once

// Vectors as wide as the registers of the instruction set that this file is compiled for: how they
// are loaded and stored, and as what they are reduced. Only for fold_loops.cpp.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/ops/elements.hpp"
#include "kernels/ops/host/machine.hpp"

#if defined(__AVX512BW__)
#define TREERING_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define TREERING_VECTOR_BYTES 32
#else
#define TREERING_VECTOR_BYTES 16
#endif

namespace treering {

/// GCC's and clang's vector extension: operators work lane by lane.
template <class T, std::size_t lanes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(lanes * sizeof(T))));
};

template <class V>
requires(!std::is_arithmetic_v<V>) struct Lanes<V> {
  using Scalar = std::remove_cvref_t<decltype(std::declval<V&>()[0])>;
  template <class U>
  using Of = typename VectorOf<U, sizeof(V) / sizeof(Scalar)>::Type;
  template <class F>
  TREERING_ARITHMETIC static V each(V x, F f) {
    for (std::size_t i = 0; i < sizeof(V) / sizeof(Scalar); ++i) x[i] = f(x[i]);
    return x;
  }
};

namespace {  // what follows differs between the instruction sets

constexpr std::size_t vector_bytes = TREERING_VECTOR_BYTES;

template <class T>
using Vector = typename VectorOf<T, vector_bytes / sizeof(T)>::Type;

/// Loads and stores ask for no alignment.
template <class V>
TREERING_ARITHMETIC V load(const std::byte* address) {
  typedef V Unaligned __attribute__((aligned(1), may_alias));
  return *reinterpret_cast<const Unaligned*>(address);
}
template <class V>
TREERING_ARITHMETIC void store(std::byte* address, V x) {
  typedef V Unaligned __attribute__((aligned(1), may_alias));
  *reinterpret_cast<Unaligned*>(address) = x;
}

/// The first `bytes` bytes of a vector, fewer than it has. What is loaded beside them is zero.
#if TREERING_VECTOR_BYTES == 64 && !defined(TREERING_SANITIZED)

template <class V>
TREERING_ARITHMETIC V load_part(const std::byte* address, std::size_t bytes) {
  const std::uint64_t mask = (std::uint64_t{1} << bytes) - 1;
  if constexpr (sizeof(V) == 64)
    return bits_as<V>(_mm512_maskz_loadu_epi8(mask, address));
  else
    return bits_as<V>(_mm256_maskz_loadu_epi8(static_cast<std::uint32_t>(mask), address));
}
template <class V>
TREERING_ARITHMETIC void store_part(std::byte* address, V x, std::size_t bytes) {
  const std::uint64_t mask = (std::uint64_t{1} << bytes) - 1;
  if constexpr (sizeof(V) == 64)
    _mm512_mask_storeu_epi8(address, mask, bits_as<__m512i>(x));
  else
    _mm256_mask_storeu_epi8(address, static_cast<std::uint32_t>(mask), bits_as<__m256i>(x));
}

#else

/// Copies fewer bytes than a vector has, by powers of two.
template <std::size_t piece>
TREERING_ARITHMETIC void copy_part(std::byte* to, const std::byte* from, std::size_t bytes) {
  if ((bytes & piece) != 0) {
    std::memcpy(to, from, piece);
    to += piece;
    from += piece;
  }
  if constexpr (piece > 1) copy_part<piece / 2>(to, from, bytes);
}

template <class V>
TREERING_ARITHMETIC V load_part(const std::byte* address, std::size_t bytes) {
  alignas(V) std::byte padded[sizeof(V)] = {};
  copy_part<sizeof(V) / 2>(padded, address, bytes);
  return load<V>(padded);
}
template <class V>
TREERING_ARITHMETIC void store_part(std::byte* address, V x, std::size_t bytes) {
  alignas(V) std::byte padded[sizeof(V)];
  store(padded, x);
  copy_part<sizeof(V) / 2>(address, padded, bytes);
}

#endif

/// A vector of elements as it is stored, and what it is reduced as.
template <class Element>
struct VectorElement;

template <class T>
struct VectorElement<PlainElement<T>> {
  using Stored = Vector<T>;
  TREERING_ARITHMETIC static Stored widen(Stored x) { return x; }
  TREERING_ARITHMETIC static Stored narrow(Stored x) { return x; }
};

template <>
struct VectorElement<BooleanElement> {
  using Stored = Vector<std::uint8_t>;
  TREERING_ARITHMETIC static Stored widen(Stored x) { return bits_as<Stored>(x != 0) & 1; }
  TREERING_ARITHMETIC static Stored narrow(Stored x) { return x; }
};

/// Narrow floats take as many more vectors as an f32 is wider.
template <int count>
struct Floats {
  Vector<float> vector[count];
  /// Every vector replaced by f(its number).
  template <class F>
  TREERING_ARITHMETIC static Floats each(F f) {
    if constexpr (count == 2)
      return {f(0), f(1)};
    else
      return {f(0), f(1), f(2), f(3)};
  }
};

template <class Op, class V>
TREERING_ARITHMETIC V combine_all(V x, V y) {
  if constexpr (std::is_class_v<V>)
    return V::each([&](int i) { return Op::combine(x.vector[i], y.vector[i]); });
  else
    return Op::combine(x, y);
}
template <class Op, class V>
TREERING_ARITHMETIC V finish_all(V x, std::int32_t divisor) {
  if constexpr (std::is_class_v<V>)
    return V::each([&](int i) { return finish<Op>(x.vector[i], divisor); });
  else
    return finish<Op>(x, divisor);
}
template <class V>
TREERING_ARITHMETIC V scale_all(V x, std::uint64_t scale) {
  if constexpr (std::is_class_v<V>)
    return V::each([&](int i) { return scaled(x.vector[i], scale); });
  else
    return scaled(x, scale);
}

/// Every 32 bits hold two or four elements: vector 0 takes the lowest ones, and so on, so that
/// nothing moves sideways.
template <class Bits, class Conversion>
struct VectorElement<NarrowElement<Bits, Conversion>> {
  using Stored = Vector<std::uint32_t>;
  static constexpr int bits = 8 * sizeof(Bits), count = 32 / bits;
  TREERING_ARITHMETIC static Floats<count> widen(Stored x) {
    return Floats<count>::each([&](int i) {
      const Stored from_here = x >> (bits * i);  // of the last there is nothing above
      return Conversion::widen(i + 1 < count ? from_here & ((1u << bits) - 1) : from_here);
    });
  }
  TREERING_ARITHMETIC static Stored narrow(Floats<count> x) {
    Stored all = Conversion::narrow(x.vector[0]);
    for (int i = 1; i < count; ++i) all |= Conversion::narrow(x.vector[i]) << (bits * i);
    return all;
  }
};

#if TREERING_VECTOR_BYTES > 16

/// The processor's own conversions of f16 give the same bits. (AVX-512's forms without a mask make
/// GCC 12 warn of something uninitialised in its own header.)
template <>
struct VectorElement<NarrowElement<std::uint16_t, Float16>> {
  using Stored = VectorOf<std::uint16_t, vector_bytes / sizeof(float)>::Type;
#if TREERING_VECTOR_BYTES == 64
  TREERING_ARITHMETIC static Vector<float> widen(Stored x) {
    return _mm512_maskz_cvtph_ps(0xffff, bits_as<__m256i>(x));
  }
  TREERING_ARITHMETIC static Stored narrow(Vector<float> x) {
    return bits_as<Stored>(_mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT));
  }
#else
  TREERING_ARITHMETIC static Vector<float> widen(Stored x) {
    return _mm256_cvtph_ps(bits_as<__m128i>(x));
  }
  TREERING_ARITHMETIC static Stored narrow(Vector<float> x) {
    return bits_as<Stored>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
#endif
};

#endif

}  // namespace
}  // namespace treering
