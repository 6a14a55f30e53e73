// SPDX-License-Identifier: AGPL-3.0-only
// Elements in host equivalents: conversions without branches, so that loops over them vectorise.
// They agree with core/float_types.hpp and with the device bit for bit.
#pragma once

#include <spark_comm/core/float_types.hpp>

#include <bit>
#include <cstdint>

namespace spark_comm::kernels::host {

[[nodiscard]] inline float as_float(std::uint32_t bits) noexcept {
  return std::bit_cast<float>(bits);
}

[[nodiscard]] inline std::uint32_t as_bits(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value);
}

/// Magnitude of a binary32 as a smaller format without infinities at the top: nearest, ties to
/// even; counts on past the largest finite encoding. Finite magnitudes below 2^17 only.
template <int ExponentBits, int MantissaBits>
[[nodiscard]] inline std::uint32_t narrow_magnitude(std::uint32_t magnitude) noexcept {
  constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  constexpr int dropped = 23 - MantissaBits;
  constexpr auto smallest_normal = static_cast<std::uint32_t>(127 + 1 - bias) << 23;
  // Adding this power of two pushes a subnormal's bits below the mantissa's end, where the hardware
  // rounds them.
  constexpr auto shifter = static_cast<std::uint32_t>(127 + 1 - bias + dropped) << 23;
  const std::uint32_t subnormal = as_bits(as_float(magnitude) + as_float(shifter)) - shifter;
  constexpr auto rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  const std::uint32_t odd = (magnitude >> dropped) & 1U;
  const std::uint32_t normal =
      (magnitude - rebias + (std::uint32_t{1} << (dropped - 1)) - 1 + odd) >> dropped;
  return magnitude < smallest_normal ? subnormal : normal;
}

[[nodiscard]] inline float decode(float value) noexcept {
  return value;
}

[[nodiscard]] inline float decode(bfloat16 value) noexcept {
  return as_float(static_cast<std::uint32_t>(value.bits) << 16U);
}

[[nodiscard]] inline float decode(float16 value) noexcept {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(value.bits & 0x7fffU) << 13U;
  // The product moves the exponent to its place, and makes subnormals normal.
  constexpr float rebias = 0x1p112F;
  const std::uint32_t finite = as_bits(as_float(magnitude) * rebias);
  const std::uint32_t special = magnitude | 0x7f800000U;  // infinity or NaN, payload kept
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16U;
  return as_float((magnitude >= 0x0f800000U ? special : finite) | sign);
}

template <typename T>
[[nodiscard]] T encode(float value) noexcept;

/// The device gives every NaN that it computes these bits.
template <>
[[nodiscard]] inline float encode<float>(float value) noexcept {
  return value == value ? value : as_float(0x7fffffffU);
}

template <>
[[nodiscard]] inline bfloat16 encode<bfloat16>(float value) noexcept {
  const std::uint32_t bits = as_bits(value);
  const std::uint32_t nearest = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  return {static_cast<std::uint16_t>(value == value ? nearest : 0x7fffU)};
}

template <>
[[nodiscard]] inline float16 encode<float16>(float value) noexcept {
  const std::uint32_t magnitude = as_bits(value) & 0x7fffffffU;
  const std::uint32_t sign = (as_bits(value) >> 16U) & 0x8000U;
  constexpr std::uint32_t overflows = 0x47800000U;  // 65536; 65520 and on round up to infinity
  const std::uint32_t finite = narrow_magnitude<5, 10>(magnitude);
  const std::uint32_t nearest = (magnitude >= overflows ? 0x7c00U : finite) | sign;
  return {static_cast<std::uint16_t>(value == value ? nearest : 0x7fffU)};
}

template <>
[[nodiscard]] inline float8_e4m3 encode<float8_e4m3>(float value) noexcept {
  const std::uint32_t magnitude = as_bits(value) & 0x7fffffffU;
  const std::uint32_t sign = (as_bits(value) >> 24U) & 0x80U;
  constexpr std::uint32_t largest = 0x43e00000U;  // 448
  const std::uint32_t finite = narrow_magnitude<4, 3>(magnitude);
  const std::uint32_t nearest = (magnitude >= largest ? 0x7eU : finite) | sign;
  return {static_cast<std::uint8_t>(value == value ? nearest : 0x7fU)};
}

/// The value as memory of type T would give it back.
template <typename T>
[[nodiscard]] inline float rounded(float value) noexcept {
  return decode(encode<T>(value));
}

}  // namespace spark_comm::kernels::host
