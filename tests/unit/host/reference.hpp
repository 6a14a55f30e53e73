// SPDX-License-Identifier: AGPL-3.0-only
// What collectives must give, computed element by element with the scalar conversions of the core.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace spark_comm::host_test {

template <typename T>
inline constexpr bool is_small_float =
    std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float8_e4m3> ||
    std::is_same_v<T, float8_e5m2>;

template <typename T>
T encode(float value) {
  if constexpr (std::is_same_v<T, float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return to_bfloat16(value);
  } else if constexpr (std::is_same_v<T, float8_e4m3>) {
    return to_float8_e4m3(value);
  } else if constexpr (std::is_same_v<T, float8_e5m2>) {
    return to_float8_e5m2(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(std::fabs(value)));
  } else {
    return static_cast<T>(value);
  }
}

/// A value of rank and position that every type holds exactly, products of all ranks included as
/// far as their wrapping or rounding is defined.
template <typename T>
T sample(int rank, std::size_t index) {
  const auto mixed = (static_cast<std::size_t>(rank) * 7 + index * 3 + index / 5) % 7;
  return encode<T>(static_cast<float>(mixed) - 3.0F);
}

template <typename Wide>
Wide combine_floats(reduce_op op, const std::vector<Wide>& values, Wide reciprocal) {
  Wide total = op == reduce_op::avg ? values[0] * reciprocal : values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Wide next = values[i];
    switch (op) {
      case reduce_op::sum:  total = total + next; break;
      case reduce_op::prod: total = total * next; break;
      case reduce_op::max:  total = std::isnan(total) || total < next ? next : total; break;
      case reduce_op::min:  total = std::isnan(total) || next < total ? next : total; break;
      case reduce_op::avg:  {
        // In two statements, so that no compiler makes one fused operation of them.
        const volatile Wide scaled = next * reciprocal;
        total = total + scaled;
        break;
      }
    }
  }
  return total;
}

template <typename T>
T combine_integers(reduce_op op, const std::vector<T>& values) {
  auto total = static_cast<std::uint64_t>(values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto next = static_cast<std::uint64_t>(values[i]);
    switch (op) {
      case reduce_op::sum:
      case reduce_op::avg:  total += next; break;
      case reduce_op::prod: total *= next; break;
      case reduce_op::max:  total = static_cast<T>(total) < values[i] ? next : total; break;
      case reduce_op::min:  total = values[i] < static_cast<T>(total) ? next : total; break;
    }
  }
  const auto wrapped = static_cast<T>(total);
  return op == reduce_op::avg ? static_cast<T>(wrapped / static_cast<T>(values.size())) : wrapped;
}

/// The reduction of one element over all ranks.
template <typename T>
T reduced(reduce_op op, const std::vector<T>& values) {
  if constexpr (is_small_float<T>) {
    std::vector<float> wide;
    for (const T each : values) {
      wide.push_back(to_float(each));
    }
    const float reciprocal = to_float(encode<T>(1.0F / static_cast<float>(values.size())));
    return encode<T>(combine_floats(op, wide, reciprocal));
  } else if constexpr (std::is_floating_point_v<T>) {
    return combine_floats(op, values, T{1} / static_cast<T>(values.size()));
  } else {
    return combine_integers(op, values);
  }
}

/// `visit.template operator()<T>()` for the C++ type of `dtype`.
template <typename Visit>
void with_type(data_type dtype, Visit visit) {
  switch (dtype) {
    case data_type::int8:        return visit.template operator()<std::int8_t>();
    case data_type::uint8:       return visit.template operator()<std::uint8_t>();
    case data_type::int32:       return visit.template operator()<std::int32_t>();
    case data_type::uint32:      return visit.template operator()<std::uint32_t>();
    case data_type::int64:       return visit.template operator()<std::int64_t>();
    case data_type::uint64:      return visit.template operator()<std::uint64_t>();
    case data_type::float16:     return visit.template operator()<float16>();
    case data_type::float32:     return visit.template operator()<float>();
    case data_type::float64:     return visit.template operator()<double>();
    case data_type::bfloat16:    return visit.template operator()<bfloat16>();
    case data_type::float8_e4m3: return visit.template operator()<float8_e4m3>();
    case data_type::float8_e5m2: return visit.template operator()<float8_e5m2>();
    case data_type::bytes:       return;
  }
}

}  // namespace spark_comm::host_test
