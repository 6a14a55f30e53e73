// SPDX-License-Identifier: AGPL-3.0-only
#include "element.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace spark_comm::app {
namespace {

template <typename T>
void put(T value, std::byte* to) noexcept {
  std::memcpy(to, &value, sizeof(T));
}

template <typename T>
T get(const std::byte* from) noexcept {
  T value{};
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Of a float with `significand` bits (the hidden one included) and that smallest subnormal.
precision of_float(int significand, int smallest_exponent) noexcept {
  return {.largest_exact_integer = std::ldexp(1, significand),
          .unit_roundoff = std::ldexp(1, -significand),
          .half_smallest = std::ldexp(1, smallest_exponent - 1)};
}

}  // namespace

void store_element(data_type dtype, double value, std::byte* to) noexcept {
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case data_type::int8:        return put(static_cast<std::int8_t>(value), to);
    case data_type::uint8:
    case data_type::bytes:       return put(static_cast<std::uint8_t>(value), to);
    case data_type::int32:       return put(static_cast<std::int32_t>(value), to);
    case data_type::uint32:      return put(static_cast<std::uint32_t>(value), to);
    case data_type::int64:       return put(static_cast<std::int64_t>(value), to);
    case data_type::uint64:      return put(static_cast<std::uint64_t>(value), to);
    case data_type::float16:     return put(to_float16(single), to);
    case data_type::float32:     return put(single, to);
    case data_type::float64:     return put(value, to);
    case data_type::bfloat16:    return put(to_bfloat16(single), to);
    case data_type::float8_e4m3: return put(to_float8_e4m3(single), to);
    case data_type::float8_e5m2: return put(to_float8_e5m2(single), to);
  }
}

double load_element(data_type dtype, const std::byte* from) noexcept {
  switch (dtype) {
    case data_type::int8:        return get<std::int8_t>(from);
    case data_type::uint8:
    case data_type::bytes:       return get<std::uint8_t>(from);
    case data_type::int32:       return get<std::int32_t>(from);
    case data_type::uint32:      return get<std::uint32_t>(from);
    case data_type::int64:       return static_cast<double>(get<std::int64_t>(from));
    case data_type::uint64:      return static_cast<double>(get<std::uint64_t>(from));
    case data_type::float16:     return to_float(get<float16>(from));
    case data_type::float32:     return get<float>(from);
    case data_type::float64:     return get<double>(from);
    case data_type::bfloat16:    return to_float(get<bfloat16>(from));
    case data_type::float8_e4m3: return to_float(get<float8_e4m3>(from));
    case data_type::float8_e5m2: return to_float(get<float8_e5m2>(from));
  }
  return 0;
}

precision precision_of(data_type dtype) noexcept {
  switch (dtype) {
    case data_type::int8:        return {.largest_exact_integer = 127};
    case data_type::uint8:
    case data_type::bytes:       return {.largest_exact_integer = 255};
    case data_type::int32:
    case data_type::uint32:
    case data_type::int64:
    case data_type::uint64:      return {.largest_exact_integer = 2147483647};
    case data_type::float16:     return of_float(11, -24);
    case data_type::float32:     return of_float(24, -149);
    case data_type::float64:     return of_float(53, -1074);
    case data_type::bfloat16:    return of_float(8, -133);
    case data_type::float8_e4m3: return of_float(4, -9);
    case data_type::float8_e5m2: return of_float(3, -16);
  }
  return {};
}

bool is_signed(data_type dtype) noexcept {
  switch (dtype) {
    case data_type::uint8:
    case data_type::uint32:
    case data_type::uint64:
    case data_type::bytes:       return false;
    case data_type::int8:
    case data_type::int32:
    case data_type::int64:
    case data_type::float16:
    case data_type::float32:
    case data_type::float64:
    case data_type::bfloat16:
    case data_type::float8_e4m3:
    case data_type::float8_e5m2: return true;
  }
  return true;
}

}  // namespace spark_comm::app
