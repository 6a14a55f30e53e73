// SPDX-License-Identifier: AGPL-3.0-only
// Chooses the SIMD target at run time; the loops are in reduce_kernels-inl.hpp, compiled once for
// each.
#include "reduce.hpp"

#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): Highway's way
#define HWY_TARGET_INCLUDE "host/reduce.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
//
#include <hwy/highway.h>
//
#include "reduce_kernels-inl.hpp"

#if HWY_ONCE
namespace spark_comm::host {

HWY_EXPORT(reduce_any);
HWY_EXPORT(round_to_element);
HWY_EXPORT(widen_element);

namespace {

template <typename T>
void divide(std::byte* out, std::size_t elements, int divisor) noexcept {
  for (std::size_t i = 0; i < elements; ++i) {
    T value{};
    std::memcpy(&value, out + i * sizeof(T), sizeof(T));
    value = static_cast<T>(value / static_cast<T>(divisor));
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

// The world has at most 64 ranks, so the divisor fits every type.
void divide_integers(data_type dtype, std::byte* out, std::size_t elements, int divisor) noexcept {
  switch (dtype) {
    case data_type::int8:        return divide<std::int8_t>(out, elements, divisor);
    case data_type::uint8:       return divide<std::uint8_t>(out, elements, divisor);
    case data_type::int32:       return divide<std::int32_t>(out, elements, divisor);
    case data_type::uint32:      return divide<std::uint32_t>(out, elements, divisor);
    case data_type::int64:       return divide<std::int64_t>(out, elements, divisor);
    case data_type::uint64:      return divide<std::uint64_t>(out, elements, divisor);
    case data_type::float16:
    case data_type::float32:
    case data_type::float64:
    case data_type::bfloat16:
    case data_type::float8_e4m3:
    case data_type::float8_e5m2:
    case data_type::bytes:       return;
  }
}

template <typename T>
std::uint64_t read_integer(const void* scalar) noexcept {
  T value{};
  std::memcpy(&value, scalar, sizeof(T));
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

}  // namespace

reduction make_reduction(data_type dtype, reduce_op op, int world_size) noexcept {
  reduction made{.dtype = dtype};
  switch (op) {
    case reduce_op::sum:  made.how = combine::sum; break;
    case reduce_op::prod: made.how = combine::prod; break;
    case reduce_op::max:  made.how = combine::max; break;
    case reduce_op::min:  made.how = combine::min; break;
    case reduce_op::avg:
      made.how = is_integer(dtype) ? combine::integer_average : combine::scaled_sum;
      made.divisor = world_size;
      made.scale_f64 = 1.0 / world_size;
      made.scale_f32 =
          HWY_DYNAMIC_DISPATCH(round_to_element)(dtype, 1.0F / static_cast<float>(world_size));
      break;
  }
  return made;
}

reduction make_scaled_sum(data_type dtype, const void* scalar) noexcept {
  reduction made{.dtype = dtype, .how = combine::scaled_sum};
  switch (dtype) {
    case data_type::int8:    made.scale_integer = read_integer<std::int8_t>(scalar); break;
    case data_type::uint8:   made.scale_integer = read_integer<std::uint8_t>(scalar); break;
    case data_type::int32:   made.scale_integer = read_integer<std::int32_t>(scalar); break;
    case data_type::uint32:  made.scale_integer = read_integer<std::uint32_t>(scalar); break;
    case data_type::int64:   made.scale_integer = read_integer<std::int64_t>(scalar); break;
    case data_type::uint64:  made.scale_integer = read_integer<std::uint64_t>(scalar); break;
    case data_type::float64: std::memcpy(&made.scale_f64, scalar, sizeof(double)); break;
    case data_type::float32: std::memcpy(&made.scale_f32, scalar, sizeof(float)); break;
    case data_type::float16:
    case data_type::bfloat16:
    case data_type::float8_e4m3:
    case data_type::float8_e5m2:
      made.scale_f32 = HWY_DYNAMIC_DISPATCH(widen_element)(dtype, scalar);
      break;
    case data_type::bytes: break;
  }
  return made;
}

void reduce_elements(const reduction& how,
                     const std::byte* const* inputs,
                     std::size_t input_count,
                     std::byte* out,
                     std::size_t elements) noexcept {
  HWY_DYNAMIC_DISPATCH(reduce_any)(how, inputs, input_count, out, elements);
  if (how.how == combine::integer_average) {
    divide_integers(how.dtype, out, elements, how.divisor);
  }
}

}  // namespace spark_comm::host
#endif  // HWY_ONCE
