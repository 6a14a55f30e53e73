// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>

namespace spark_comm {
namespace {

struct row {
  data_type dtype;
  std::uint8_t native_number;
  std::size_t bytes;
  std::string_view name;
  bool integer;
  bool fp8;
  bool reducible;
};

constexpr row rows[] = {
    {data_type::int8, 0, 1, "int8", true, false, true},
    {data_type::uint8, 1, 1, "uint8", true, false, true},
    {data_type::int32, 2, 4, "int32", true, false, true},
    {data_type::uint32, 3, 4, "uint32", true, false, true},
    {data_type::int64, 4, 8, "int64", true, false, true},
    {data_type::uint64, 5, 8, "uint64", true, false, true},
    {data_type::float16, 6, 2, "fp16", false, false, true},
    {data_type::float32, 7, 4, "fp32", false, false, true},
    {data_type::float64, 8, 8, "fp64", false, false, true},
    {data_type::bfloat16, 9, 2, "bf16", false, false, true},
    {data_type::float8_e4m3, 10, 1, "fp8_e4m3", false, true, true},
    {data_type::float8_e5m2, 11, 1, "fp8_e5m2", false, true, true},
    {data_type::bytes, 255, 1, "bytes", false, false, false},
};

TEST(data_types, every_member_has_its_number_size_name_and_kind) {
  std::set<data_type> seen;
  for (const row& expected : rows) {
    seen.insert(expected.dtype);
    EXPECT_EQ(static_cast<std::uint8_t>(expected.dtype), expected.native_number) << expected.name;
    EXPECT_EQ(size_of(expected.dtype), expected.bytes) << expected.name;
    EXPECT_EQ(name_of(expected.dtype), expected.name);
    EXPECT_EQ(is_integer(expected.dtype), expected.integer) << expected.name;
    EXPECT_EQ(is_fp8(expected.dtype), expected.fp8) << expected.name;
    EXPECT_EQ(can_reduce(expected.dtype), expected.reducible) << expected.name;
    EXPECT_EQ(parse_data_type(expected.name), expected.dtype);
  }
  EXPECT_EQ(seen, std::set<data_type>(std::begin(all_data_types), std::end(all_data_types)));
  EXPECT_EQ(std::size(all_data_types), std::size(rows));
}

TEST(data_types, value_outside_the_enumeration_has_no_size_and_no_name) {
  EXPECT_EQ(size_of(static_cast<data_type>(12)), 0U);
  EXPECT_EQ(name_of(static_cast<data_type>(254)), "unknown");
}

TEST(data_types, long_spellings_are_understood_and_others_are_not) {
  EXPECT_EQ(parse_data_type("bfloat16"), data_type::bfloat16);
  EXPECT_EQ(parse_data_type("half"), data_type::float16);
  EXPECT_EQ(parse_data_type("float16"), data_type::float16);
  EXPECT_EQ(parse_data_type("float"), data_type::float32);
  EXPECT_EQ(parse_data_type("float32"), data_type::float32);
  EXPECT_EQ(parse_data_type("double"), data_type::float64);
  EXPECT_EQ(parse_data_type("float64"), data_type::float64);
  EXPECT_EQ(parse_data_type("char"), data_type::int8);
  for (const std::string_view wrong : {"", "BF16", "bf16 ", "fp8", "unknown", "int16"}) {
    EXPECT_EQ(parse_data_type(wrong), std::nullopt) << wrong;
  }
}

TEST(data_types, element_types_map_to_the_type_of_their_size) {
  const auto agrees = []<typename T>(T /*element*/, data_type expected) {
    return data_type_of<T> == expected && size_of(expected) == sizeof(T);
  };
  EXPECT_TRUE(agrees(std::int8_t{}, data_type::int8));
  EXPECT_TRUE(agrees(std::uint8_t{}, data_type::uint8));
  EXPECT_TRUE(agrees(std::int32_t{}, data_type::int32));
  EXPECT_TRUE(agrees(std::uint32_t{}, data_type::uint32));
  EXPECT_TRUE(agrees(std::int64_t{}, data_type::int64));
  EXPECT_TRUE(agrees(std::uint64_t{}, data_type::uint64));
  EXPECT_TRUE(agrees(float16{}, data_type::float16));
  EXPECT_TRUE(agrees(float{}, data_type::float32));
  EXPECT_TRUE(agrees(double{}, data_type::float64));
  EXPECT_TRUE(agrees(bfloat16{}, data_type::bfloat16));
  EXPECT_TRUE(agrees(float8_e4m3{}, data_type::float8_e4m3));
  EXPECT_TRUE(agrees(float8_e5m2{}, data_type::float8_e5m2));
  EXPECT_TRUE(agrees(std::byte{}, data_type::bytes));
}

TEST(reduce_ops, every_member_has_its_number_and_name) {
  constexpr std::string_view names[] = {"sum", "prod", "max", "min", "avg"};
  ASSERT_EQ(std::size(all_reduce_ops), std::size(names));
  for (std::size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(all_reduce_ops[i]), i) << "NCCL's own number";
    EXPECT_EQ(name_of(all_reduce_ops[i]), names[i]);
    EXPECT_EQ(parse_reduce_op(names[i]), all_reduce_ops[i]);
  }
  EXPECT_EQ(name_of(static_cast<reduce_op>(5)), "unknown");
  EXPECT_EQ(parse_reduce_op("mean"), std::nullopt);
  EXPECT_EQ(parse_reduce_op(""), std::nullopt);
}

TEST(device_spans, count_bytes_and_become_const_but_not_back) {
  float memory[4] = {};
  const device_span<float> mutable_span{memory, 4};
  const device_span<const float> const_span = mutable_span;
  EXPECT_EQ(mutable_span.size_bytes(), 16U);
  EXPECT_EQ(const_span.address, memory);
  EXPECT_EQ(const_span.count_elements, 4U);
  EXPECT_EQ(device_span<float>{}.address, nullptr);
  EXPECT_EQ(device_span<float>{}.size_bytes(), 0U);
  static_assert(!std::is_convertible_v<device_span<const float>, device_span<float>>);
  static_assert(!std::is_convertible_v<device_span<double>, device_span<const float>>);
  static_assert(std::is_trivially_copyable_v<device_span<float>>);
}

}  // namespace
}  // namespace spark_comm
