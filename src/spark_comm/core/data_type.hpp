// SPDX-License-Identifier: AGPL-3.0-only
// The element types that collectives move and reduce.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/float_types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace spark_comm {

/// Element type of a buffer. The numbers up to 11 are NCCL's own.
enum class data_type : std::uint8_t {
  int8 = 0,          ///< Signed 8 bit; sums wrap.
  uint8 = 1,         ///< Unsigned 8 bit; sums wrap.
  int32 = 2,         ///< Signed 32 bit; sums wrap.
  uint32 = 3,        ///< Unsigned 32 bit; sums wrap.
  int64 = 4,         ///< Signed 64 bit; sums wrap.
  uint64 = 5,        ///< Unsigned 64 bit; sums wrap.
  float16 = 6,       ///< IEEE binary16.
  float32 = 7,       ///< IEEE binary32.
  float64 = 8,       ///< IEEE binary64.
  bfloat16 = 9,      ///< Upper half of a binary32.
  float8_e4m3 = 10,  ///< OCP fp8, 4 exponent bits; reduced only where hardware and library do.
  float8_e5m2 = 11,  ///< OCP fp8, 5 exponent bits; reduced only where hardware and library do.
  bytes = 255,       ///< Opaque bytes: moved, never reduced. Travels as uint8.
};

inline constexpr data_type all_data_types[] = {
    data_type::int8,
    data_type::uint8,
    data_type::int32,
    data_type::uint32,
    data_type::int64,
    data_type::uint64,
    data_type::float16,
    data_type::float32,
    data_type::float64,
    data_type::bfloat16,
    data_type::float8_e4m3,
    data_type::float8_e5m2,
    data_type::bytes,
};

/// Bytes of one element; 0 for a value outside the enumeration.
[[nodiscard]] SPARK_COMM_API std::size_t size_of(data_type dtype) noexcept;

/// Short name as the command line spells it: "bf16", "fp8_e4m3"; "unknown" outside the enumeration.
[[nodiscard]] SPARK_COMM_API std::string_view name_of(data_type dtype) noexcept;

/// The inverse of `name_of`, also taking the long spellings ("bfloat16", "float", "half").
[[nodiscard]] SPARK_COMM_API std::optional<data_type> parse_data_type(
    std::string_view name) noexcept;

[[nodiscard]] constexpr bool is_integer(data_type dtype) noexcept {
  return dtype <= data_type::uint64;
}

[[nodiscard]] constexpr bool is_fp8(data_type dtype) noexcept {
  return dtype == data_type::float8_e4m3 || dtype == data_type::float8_e5m2;
}

/// The data type of a C++ element type. Not defined for types that cannot be moved or reduced.
template <typename T>
inline constexpr data_type data_type_of = [] { static_assert(sizeof(T) == 0, "no data_type"); }();

template <>
inline constexpr data_type data_type_of<std::int8_t> = data_type::int8;
template <>
inline constexpr data_type data_type_of<std::uint8_t> = data_type::uint8;
template <>
inline constexpr data_type data_type_of<std::int32_t> = data_type::int32;
template <>
inline constexpr data_type data_type_of<std::uint32_t> = data_type::uint32;
template <>
inline constexpr data_type data_type_of<std::int64_t> = data_type::int64;
template <>
inline constexpr data_type data_type_of<std::uint64_t> = data_type::uint64;
template <>
inline constexpr data_type data_type_of<float16> = data_type::float16;
template <>
inline constexpr data_type data_type_of<float> = data_type::float32;
template <>
inline constexpr data_type data_type_of<double> = data_type::float64;
template <>
inline constexpr data_type data_type_of<bfloat16> = data_type::bfloat16;
template <>
inline constexpr data_type data_type_of<float8_e4m3> = data_type::float8_e4m3;
template <>
inline constexpr data_type data_type_of<float8_e5m2> = data_type::float8_e5m2;
template <>
inline constexpr data_type data_type_of<std::byte> = data_type::bytes;

}  // namespace spark_comm
