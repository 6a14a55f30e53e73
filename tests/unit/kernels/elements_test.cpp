// SPDX-License-Identifier: AGPL-3.0-only
// The branchless conversions agree with the plain ones of the core layer.
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/kernels/host/elements.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace spark_comm::kernels::host {
namespace {

// Every sign, exponent and the mantissas where rounding decides, then some of the rest.
std::vector<float> probing_floats() {
  std::vector<float> values;
  const std::vector<std::uint32_t> mantissas = {
      0,       1,        0xfff,    0x1000,   0x1001,   0x2000,   0x3000,
      0x7fff,  0x8000,   0x8001,   0x17fff,  0x18000,  0x80000,  0x7ffff,
      0x80001, 0x180000, 0x17ffff, 0x180001, 0x400000, 0x7ff000, 0x7fffff};
  for (std::uint32_t high = 0; high < 512; ++high) {
    for (const std::uint32_t mantissa : mantissas) {
      values.push_back(std::bit_cast<float>(high << 23U | mantissa));
    }
  }
  std::mt19937 random{1};
  for (int i = 0; i < 200000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  return values;
}

TEST(elements, decode_agrees_for_all_16_bit_patterns) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const float16 half{static_cast<std::uint16_t>(bits)};
    const bfloat16 brain{static_cast<std::uint16_t>(bits)};
    if (std::isnan(to_float(half))) {
      EXPECT_TRUE(std::isnan(decode(half))) << bits;
    } else {
      EXPECT_EQ(as_bits(decode(half)), as_bits(to_float(half))) << bits;
    }
    EXPECT_EQ(as_bits(decode(brain)), as_bits(to_float(brain))) << bits;
  }
}

TEST(elements, encode_agrees_where_rounding_decides) {
  for (const float value : probing_floats()) {
    ASSERT_EQ(encode<float16>(value).bits, to_float16(value).bits) << value;
    ASSERT_EQ(encode<bfloat16>(value).bits, to_bfloat16(value).bits) << value;
    ASSERT_EQ(encode<float8_e4m3>(value).bits, to_float8_e4m3(value).bits) << value;
  }
}

TEST(elements, every_small_value_survives_a_round_trip) {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const float16 half{static_cast<std::uint16_t>(bits)};
    if (!std::isnan(to_float(half))) {
      EXPECT_EQ(encode<float16>(decode(half)).bits, bits);
    }
  }
  for (std::uint32_t bits = 0; bits <= 0xffU; ++bits) {
    const float8_e4m3 tiny{static_cast<std::uint8_t>(bits)};
    if (!std::isnan(to_float(tiny))) {
      EXPECT_EQ(encode<float8_e4m3>(to_float(tiny)).bits, bits);
    }
  }
}

TEST(elements, nan_has_the_devices_bits) {
  const float nan = std::bit_cast<float>(0xffc12345U);
  EXPECT_EQ(as_bits(encode<float>(nan)), 0x7fffffffU);
  EXPECT_EQ(encode<bfloat16>(nan).bits, 0x7fff);
  EXPECT_EQ(encode<float16>(nan).bits, 0x7fff);
  EXPECT_EQ(encode<float8_e4m3>(nan).bits, 0x7f);
}

}  // namespace
}  // namespace spark_comm::kernels::host
