// SPDX-License-Identifier: AGPL-3.0-only
// The arithmetic of reductions: elements of all ranks become one, always in rank order, so that
// every rank computes the same bits from the same inputs.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstddef>
#include <cstdint>

namespace spark_comm::host {

/// How two elements become one.
enum class combine : std::uint8_t {
  sum,              ///< Integers wrap.
  prod,             ///< Integers wrap.
  max,              ///< A number beats NaN.
  min,              ///< A number beats NaN.
  scaled_sum,       ///< Each input times `scale` first.
  integer_average,  ///< Wrapped sum divided by `divisor`, cut towards zero.
};

/// One reduction, ready to run.
struct reduction {
  data_type dtype = data_type::float32;
  combine how = combine::sum;
  float scale_f32 = 1.0F;           ///< Of the floats up to 32 bits; a value of the element type.
  double scale_f64 = 1.0;           ///< Of float64.
  std::uint64_t scale_integer = 1;  ///< Of integers, sign extended.
  int divisor = 1;
};

/// Bytes of one element of NCCL's types; 0 for anything else.
[[nodiscard]] constexpr std::size_t element_bytes(data_type dtype) noexcept {
  switch (dtype) {
    case data_type::int8:
    case data_type::uint8:
    case data_type::float8_e4m3:
    case data_type::float8_e5m2: return 1;
    case data_type::float16:
    case data_type::bfloat16:    return 2;
    case data_type::int32:
    case data_type::uint32:
    case data_type::float32:     return 4;
    case data_type::int64:
    case data_type::uint64:
    case data_type::float64:     return 8;
    case data_type::bytes:       break;
  }
  return 0;
}

/// The reduction behind one of NCCL's own operations.
/// Numerics: a float average multiplies each input by 1/world rounded to the element type.
[[nodiscard]] reduction make_reduction(data_type dtype, reduce_op op, int world_size) noexcept;

/// A sum of inputs times a scalar of the element type, read from `scalar`.
[[nodiscard]] reduction make_scaled_sum(data_type dtype, const void* scalar) noexcept;

/// Reduces element i of all inputs, in the order of `inputs`, into element i of `out`.
///
/// Shape: `inputs` has `input_count` >= 1 pointers to `elements` elements each. `out` may be one of
/// the inputs; any alignment to whole elements. Numerics: fp8, fp16 and bf16 accumulate in fp32 and
/// round once; fp32 and fp64 in their own type; no fused multiply-add; NaN results are the one
/// canonical NaN of the type. The same bits for every SIMD target, alignment and length.
void reduce_elements(const reduction& how,
                     const std::byte* const* inputs,
                     std::size_t input_count,
                     std::byte* out,
                     std::size_t elements) noexcept;

}  // namespace spark_comm::host
