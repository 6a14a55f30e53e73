// SPDX-License-Identifier: AGPL-3.0-only
// How elements of several ranks become one.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace spark_comm {

/// The numbers are NCCL's own.
enum class reduce_op : std::uint8_t {
  sum = 0,   ///< Integers wrap in their own width.
  prod = 1,  ///< Integers wrap in their own width.
  max = 2,   ///< A number beats NaN.
  min = 3,   ///< A number beats NaN.
  avg = 4,   ///< Integers: wrapped sum divided by the rank count, cut towards zero.
};

inline constexpr reduce_op all_reduce_ops[] = {
    reduce_op::sum, reduce_op::prod, reduce_op::max, reduce_op::min, reduce_op::avg};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(reduce_op op) noexcept;
[[nodiscard]] SPARK_COMM_API std::optional<reduce_op> parse_reduce_op(
    std::string_view name) noexcept;

/// Opaque bytes are moved and never reduced.
[[nodiscard]] constexpr bool can_reduce(data_type dtype) noexcept {
  return dtype != data_type::bytes;
}

}  // namespace spark_comm
