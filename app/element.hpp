// SPDX-License-Identifier: AGPL-3.0-only
// One element of any data type as a number and back, for references that are independent of the
// library's own arithmetic.
#pragma once

#include <spark_comm/core/data_type.hpp>

#include <cstddef>

namespace spark_comm::app {

/// Writes `value`, which the type must be able to hold exactly, to `to`. Bytes are written as
/// uint8.
void store_element(data_type dtype, double value, std::byte* to) noexcept;

/// The element at `from`. 64-bit integers beyond 2^53 are rounded.
[[nodiscard]] double load_element(data_type dtype, const std::byte* from) noexcept;

/// How a type rounds; all that a bound on a result needs.
struct precision {
  /// Every integer of a magnitude up to this is exact, and so is every sum that stays below.
  double largest_exact_integer = 0;
  /// Largest relative error of one rounding; 0 for integers.
  double unit_roundoff = 0;
  /// Half of the smallest positive value: the error of a rounding near zero.
  double half_smallest = 0;
};

[[nodiscard]] precision precision_of(data_type dtype) noexcept;

[[nodiscard]] bool is_signed(data_type dtype) noexcept;

}  // namespace spark_comm::app
