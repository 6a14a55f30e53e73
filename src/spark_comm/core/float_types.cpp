// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/float_types.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spark_comm {
namespace {

// A float format of `ExponentBits` and `MantissaBits`, with a sign on top.
template <int ExponentBits, int MantissaBits>
struct format {
  static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
  static constexpr std::uint32_t mantissa_mask = (1U << MantissaBits) - 1;
  static constexpr std::uint32_t exponent_mask = (1U << ExponentBits) - 1;
  static constexpr int sign_shift = ExponentBits + MantissaBits;

  // Decodes a finite value.
  static float decode(std::uint32_t bits) noexcept {
    const std::uint32_t exponent = (bits >> MantissaBits) & exponent_mask;
    const auto mantissa = static_cast<float>(bits & mantissa_mask);
    constexpr auto one = static_cast<float>(1U << MantissaBits);
    const float magnitude =
        exponent == 0 ? std::ldexp(mantissa / one, 1 - bias)
                      : std::ldexp(1.0F + mantissa / one, static_cast<int>(exponent) - bias);
    return (bits >> sign_shift) != 0 ? -magnitude : magnitude;
  }

  // Rounds a finite magnitude to the nearest encoding, ties to even, without a limit at the top:
  // the result counts up past the largest finite encoding, so the caller sees overflow.
  static std::uint32_t encode_magnitude(float magnitude) noexcept {
    if (magnitude == 0.0F) {
      return 0;
    }
    int exponent = 0;
    static_cast<void>(std::frexp(magnitude, &exponent));
    // The step between neighbours at this magnitude; constant below the smallest normal.
    const int step = (exponent - 1 < 1 - bias ? 1 - bias : exponent - 1) - MantissaBits;
    // Exact: scaling by a power of two. nearbyint rounds ties to even in the default mode.
    const auto steps = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -step)));
    const auto biased = static_cast<std::uint32_t>(step + MantissaBits + bias - 1);
    return (biased << MantissaBits) + steps;
  }
};

using half_format = format<5, 10>;
using e4m3_format = format<4, 3>;
using e5m2_format = format<5, 2>;

std::uint32_t sign_of(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) >> 31U;
}

}  // namespace

float to_float(float16 value) noexcept {
  if ((value.bits & 0x7c00U) == 0x7c00U) {
    const float magnitude = (value.bits & 0x3ffU) != 0 ? std::numeric_limits<float>::quiet_NaN()
                                                       : std::numeric_limits<float>::infinity();
    return (value.bits & 0x8000U) != 0 ? -magnitude : magnitude;
  }
  return half_format::decode(value.bits);
}

float to_float(bfloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

float to_float(float8_e4m3 value) noexcept {
  if ((value.bits & 0x7fU) == 0x7fU) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return e4m3_format::decode(value.bits);
}

float to_float(float8_e5m2 value) noexcept {
  if ((value.bits & 0x7cU) == 0x7cU) {
    const float magnitude = (value.bits & 0x3U) != 0 ? std::numeric_limits<float>::quiet_NaN()
                                                     : std::numeric_limits<float>::infinity();
    return (value.bits & 0x80U) != 0 ? -magnitude : magnitude;
  }
  return e5m2_format::decode(value.bits);
}

float16 to_float16(float value) noexcept {
  if (std::isnan(value)) {
    return {0x7fff};
  }
  constexpr std::uint32_t infinity = 0x7c00;
  std::uint32_t bits = infinity;
  if (std::isfinite(value)) {
    bits = std::min(half_format::encode_magnitude(std::fabs(value)), infinity);
  }
  return {static_cast<std::uint16_t>(bits | (sign_of(value) << 15U))};
}

bfloat16 to_bfloat16(float value) noexcept {
  if (std::isnan(value)) {
    return {0x7fff};
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // Adding just under half a unit, plus one when the kept part is odd, rounds ties to even; a
  // carry out of the mantissa is the next exponent, up to infinity.
  return {static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U)};
}

float8_e4m3 to_float8_e4m3(float value) noexcept {
  if (std::isnan(value)) {
    return {0x7f};
  }
  constexpr std::uint32_t largest = 0x7e;  // 448
  std::uint32_t bits = largest;
  if (std::fabs(value) < 448.0F) {
    bits = e4m3_format::encode_magnitude(std::fabs(value));
  }
  return {static_cast<std::uint8_t>(bits | (sign_of(value) << 7U))};
}

float8_e5m2 to_float8_e5m2(float value) noexcept {
  if (std::isnan(value)) {
    return {0x7f};
  }
  constexpr std::uint32_t largest = 0x7b;  // 57344
  std::uint32_t bits = largest;
  if (std::fabs(value) < 57344.0F) {
    bits = e5m2_format::encode_magnitude(std::fabs(value));
  }
  return {static_cast<std::uint8_t>(bits | (sign_of(value) << 7U))};
}

}  // namespace spark_comm
