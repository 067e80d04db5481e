#include "kernels/ops/scale.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "treering/error.hpp"

namespace treering {

std::uint64_t scale_bits(DataType type, double scale) {
  if (type == DataType::f64) return std::bit_cast<std::uint64_t>(scale);
  if (is_floating_point(type)) return std::bit_cast<std::uint32_t>(static_cast<float>(scale));
  // [least, beyond): both are powers of two, or zero, and so exact.
  const int width = static_cast<int>(size_of(type)) * 8;
  const double least = is_signed_integer(type) ? -std::ldexp(1, width - 1) : 0;
  const double beyond = std::ldexp(1, is_signed_integer(type) ? width - 1 : width);
  const double whole = std::trunc(scale);
  const bool fits = whole >= least && whole < beyond;
  if (!applies(ReduceOp::premul_sum, type) || !fits)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("`scale` = {} is no value of {}; scale in a floating-point type", scale,
                            name(type)));
  return whole < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(whole))
                   : static_cast<std::uint64_t>(whole);
}

}  // namespace treering
