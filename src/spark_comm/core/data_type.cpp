// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace spark_comm {
namespace {

constexpr std::array<std::pair<std::string_view, data_type>, 8> long_spellings = {{
    {"char", data_type::int8},
    {"half", data_type::float16},
    {"float16", data_type::float16},
    {"float", data_type::float32},
    {"float32", data_type::float32},
    {"double", data_type::float64},
    {"float64", data_type::float64},
    {"bfloat16", data_type::bfloat16},
}};

}  // namespace

std::size_t size_of(data_type dtype) noexcept {
  switch (dtype) {
    case data_type::int8:
    case data_type::uint8:
    case data_type::float8_e4m3:
    case data_type::float8_e5m2:
    case data_type::bytes:       return 1;
    case data_type::float16:
    case data_type::bfloat16:    return 2;
    case data_type::int32:
    case data_type::uint32:
    case data_type::float32:     return 4;
    case data_type::int64:
    case data_type::uint64:
    case data_type::float64:     return 8;
  }
  return 0;
}

std::string_view name_of(data_type dtype) noexcept {
  switch (dtype) {
    case data_type::int8:        return "int8";
    case data_type::uint8:       return "uint8";
    case data_type::int32:       return "int32";
    case data_type::uint32:      return "uint32";
    case data_type::int64:       return "int64";
    case data_type::uint64:      return "uint64";
    case data_type::float16:     return "fp16";
    case data_type::float32:     return "fp32";
    case data_type::float64:     return "fp64";
    case data_type::bfloat16:    return "bf16";
    case data_type::float8_e4m3: return "fp8_e4m3";
    case data_type::float8_e5m2: return "fp8_e5m2";
    case data_type::bytes:       return "bytes";
  }
  return "unknown";
}

std::optional<data_type> parse_data_type(std::string_view name) noexcept {
  for (const data_type dtype : all_data_types) {
    if (name == name_of(dtype)) {
      return dtype;
    }
  }
  for (const auto& [spelling, dtype] : long_spellings) {
    if (name == spelling) {
      return dtype;
    }
  }
  return std::nullopt;
}

std::string_view name_of(reduce_op op) noexcept {
  switch (op) {
    case reduce_op::sum:  return "sum";
    case reduce_op::prod: return "prod";
    case reduce_op::max:  return "max";
    case reduce_op::min:  return "min";
    case reduce_op::avg:  return "avg";
  }
  return "unknown";
}

std::optional<reduce_op> parse_reduce_op(std::string_view name) noexcept {
  for (const reduce_op op : all_reduce_ops) {
    if (name == name_of(op)) {
      return op;
    }
  }
  return std::nullopt;
}

}  // namespace spark_comm
