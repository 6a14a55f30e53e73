// SPDX-License-Identifier: AGPL-3.0-only
// Small float formats as plain bit patterns, and their exact conversions.
// Conversions round to nearest, ties to even, as the GPU's do; vectorised forms are the host
// runtime's and must agree with these bit for bit.
#pragma once

#include <spark_comm/core/export.hpp>

#include <cstdint>

namespace spark_comm {

/// IEEE binary16.
struct float16 {
  std::uint16_t bits;
  friend bool operator==(float16, float16) = default;
};

/// The upper 16 bits of a binary32.
struct bfloat16 {
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};

/// OCP E4M3 (no infinity, one NaN pattern, largest value 448).
struct float8_e4m3 {
  std::uint8_t bits;
  friend bool operator==(float8_e4m3, float8_e4m3) = default;
};

/// OCP E5M2 (infinities, largest finite value 57344).
struct float8_e5m2 {
  std::uint8_t bits;
  friend bool operator==(float8_e5m2, float8_e5m2) = default;
};

[[nodiscard]] SPARK_COMM_API float to_float(float16 value) noexcept;
[[nodiscard]] SPARK_COMM_API float to_float(bfloat16 value) noexcept;
[[nodiscard]] SPARK_COMM_API float to_float(float8_e4m3 value) noexcept;
[[nodiscard]] SPARK_COMM_API float to_float(float8_e5m2 value) noexcept;

/// Numerics: nearest, ties to even; NaN becomes the quiet NaN 0x7fff; overflow becomes infinity.
[[nodiscard]] SPARK_COMM_API float16 to_float16(float value) noexcept;
/// Numerics: as `to_float16`; NaN becomes 0x7fff.
[[nodiscard]] SPARK_COMM_API bfloat16 to_bfloat16(float value) noexcept;
/// Numerics: nearest, ties to even; beyond 448 saturates to 448 (CUDA's satfinite); NaN is 0x7f.
[[nodiscard]] SPARK_COMM_API float8_e4m3 to_float8_e4m3(float value) noexcept;
/// Numerics: nearest, ties to even; saturates to 57344 (CUDA's satfinite); NaN is 0x7f.
[[nodiscard]] SPARK_COMM_API float8_e5m2 to_float8_e5m2(float value) noexcept;

}  // namespace spark_comm
