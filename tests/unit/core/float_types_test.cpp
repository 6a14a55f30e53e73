// SPDX-License-Identifier: AGPL-3.0-only
// Every pattern of every small float format against a reference that shares nothing with the code
// under test: it decodes with powers of two in double and encodes by looking for the nearest.
#include <spark_comm/core/float_types.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace spark_comm {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

// What is to be known about a format: its bits, and what its top patterns mean.
struct format {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t largest_finite;  // pattern
  std::uint32_t overflow;        // pattern that a larger value becomes
  std::uint32_t nan;             // pattern that NaN becomes
};

constexpr format fp16_format{5, 10, 0x7bff, 0x7c00, 0x7fff};
constexpr format bf16_format{8, 7, 0x7f7f, 0x7f80, 0x7fff};
constexpr format e4m3_format{4, 3, 0x7e, 0x7e, 0x7f};
constexpr format e5m2_format{5, 2, 0x7b, 0x7b, 0x7f};

double reference_value(const format& f, std::uint32_t pattern) {
  const int bias = (1 << (f.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(pattern & ((1U << f.mantissa_bits) - 1));
  const auto exponent = static_cast<int>(pattern >> f.mantissa_bits);
  const double fraction = mantissa * std::exp2(-f.mantissa_bits);
  return exponent == 0 ? fraction * std::exp2(1 - bias)
                       : (1.0 + fraction) * std::exp2(exponent - bias);
}

// The positive finite values in order; the index is the pattern.
std::vector<double> reference_values(const format& f) {
  std::vector<double> values;
  for (std::uint32_t pattern = 0; pattern <= f.largest_finite; ++pattern) {
    values.push_back(reference_value(f, pattern));
  }
  return values;
}

template <typename Small>
void expect_decodes_every_pattern(const format& f) {
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const std::uint32_t sign_bit = 1U << (width - 1);
  for (std::uint32_t pattern = 0; pattern <= f.largest_finite; ++pattern) {
    const auto expected = static_cast<float>(reference_value(f, pattern));
    const float positive = to_float(Small{static_cast<decltype(Small::bits)>(pattern)});
    const float negative = to_float(Small{static_cast<decltype(Small::bits)>(pattern | sign_bit)});
    ASSERT_EQ(std::bit_cast<std::uint32_t>(positive), std::bit_cast<std::uint32_t>(expected))
        << std::hex << pattern;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(negative), std::bit_cast<std::uint32_t>(-expected))
        << std::hex << pattern;
  }
}

// All decisions of rounding: each value itself, the middle between each two neighbours (ties to
// even), and the floats next to the middle.
template <typename Encode>
void expect_rounds_to_nearest_even(const format& f, Encode encode) {
  const std::vector<double> values = reference_values(f);
  const std::uint32_t sign_bit = 1U << (f.exponent_bits + f.mantissa_bits);
  const auto expect = [&](float value, std::uint32_t pattern) {
    ASSERT_EQ(encode(value).bits, pattern) << value;
    ASSERT_EQ(encode(-value).bits, pattern | sign_bit) << -value;
  };
  for (std::uint32_t low = 0; low < f.largest_finite; ++low) {
    const std::uint32_t high = low + 1;
    const auto middle = static_cast<float>((values[low] + values[high]) / 2);
    ASSERT_EQ(static_cast<double>(middle), (values[low] + values[high]) / 2) << "exact in a float";
    expect(static_cast<float>(values[low]), low);
    expect(middle, (low & 1U) == 0 ? low : high);
    expect(std::nextafter(middle, 0.0F), low);
    expect(std::nextafter(middle, infinity), high);
  }
  expect(static_cast<float>(values[f.largest_finite]), f.largest_finite);
}

template <typename Encode>
void expect_ends_as_documented(const format& f, Encode encode) {
  const std::uint32_t sign_bit = 1U << (f.exponent_bits + f.mantissa_bits);
  for (const float value : {infinity, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(encode(value).bits, f.overflow) << value;
    EXPECT_EQ(encode(-value).bits, f.overflow | sign_bit) << value;
  }
  for (const std::uint32_t payload : {0x7fc00000U, 0x7f800001U, 0xffc00000U, 0xff800001U}) {
    EXPECT_EQ(encode(std::bit_cast<float>(payload)).bits, f.nan) << std::hex << payload;
  }
  EXPECT_EQ(encode(0.0F).bits, 0U);
  EXPECT_EQ(encode(-0.0F).bits, sign_bit);
}

TEST(float16_conversion, decodes_every_pattern) {
  expect_decodes_every_pattern<float16>(fp16_format);
  EXPECT_EQ(to_float(float16{0x7c00}), infinity);
  EXPECT_EQ(to_float(float16{0xfc00}), -infinity);
  for (std::uint32_t pattern = 0x7c01; pattern <= 0x7fff; ++pattern) {
    ASSERT_TRUE(std::isnan(to_float(float16{static_cast<std::uint16_t>(pattern)})));
    ASSERT_TRUE(std::isnan(to_float(float16{static_cast<std::uint16_t>(pattern | 0x8000U)})));
  }
}

TEST(float16_conversion, rounds_to_nearest_even_and_overflows_to_infinity) {
  expect_rounds_to_nearest_even(fp16_format, to_float16);
  expect_ends_as_documented(fp16_format, to_float16);
  EXPECT_EQ(to_float16(65519.996F).bits, 0x7bff) << "below the middle to the next step";
  EXPECT_EQ(to_float16(65520.0F).bits, 0x7c00) << "the middle, and the largest is odd";
}

TEST(bfloat16_conversion, decodes_every_pattern) {
  expect_decodes_every_pattern<bfloat16>(bf16_format);
  EXPECT_EQ(to_float(bfloat16{0x7f80}), infinity);
  EXPECT_EQ(to_float(bfloat16{0xff80}), -infinity);
  for (std::uint32_t pattern = 0x7f81; pattern <= 0x7fff; ++pattern) {
    ASSERT_TRUE(std::isnan(to_float(bfloat16{static_cast<std::uint16_t>(pattern)})));
    ASSERT_TRUE(std::isnan(to_float(bfloat16{static_cast<std::uint16_t>(pattern | 0x8000U)})));
  }
}

TEST(bfloat16_conversion, rounds_to_nearest_even_and_overflows_to_infinity) {
  expect_rounds_to_nearest_even(bf16_format, to_bfloat16);
  expect_ends_as_documented(bf16_format, to_bfloat16);
}

TEST(e4m3_conversion, decodes_every_pattern) {
  expect_decodes_every_pattern<float8_e4m3>(e4m3_format);
  EXPECT_EQ(to_float(float8_e4m3{0x7e}), 448.0F);
  EXPECT_TRUE(std::isnan(to_float(float8_e4m3{0x7f})));
  EXPECT_TRUE(std::isnan(to_float(float8_e4m3{0xff})));
}

TEST(e4m3_conversion, rounds_to_nearest_even_and_saturates) {
  expect_rounds_to_nearest_even(e4m3_format, to_float8_e4m3);
  expect_ends_as_documented(e4m3_format, to_float8_e4m3);
  for (const float value : {448.0F, 449.0F, 464.0F, 465.0F, 480.0F, 1000.0F}) {
    EXPECT_EQ(to_float8_e4m3(value).bits, 0x7e) << value;
  }
}

TEST(e5m2_conversion, decodes_every_pattern) {
  expect_decodes_every_pattern<float8_e5m2>(e5m2_format);
  EXPECT_EQ(to_float(float8_e5m2{0x7b}), 57344.0F);
  EXPECT_EQ(to_float(float8_e5m2{0x7c}), infinity);
  EXPECT_EQ(to_float(float8_e5m2{0xfc}), -infinity);
  for (const int pattern : {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff}) {
    EXPECT_TRUE(std::isnan(to_float(float8_e5m2{static_cast<std::uint8_t>(pattern)})));
  }
}

TEST(e5m2_conversion, rounds_to_nearest_even_and_saturates) {
  expect_rounds_to_nearest_even(e5m2_format, to_float8_e5m2);
  expect_ends_as_documented(e5m2_format, to_float8_e5m2);
  for (const float value : {57344.0F, 57345.0F, 61440.0F, 65536.0F}) {
    EXPECT_EQ(to_float8_e5m2(value).bits, 0x7b) << value;
  }
}

TEST(float_conversions, subnormal_floats_end_at_zero_with_their_sign) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(to_float16(tiny).bits, 0);
  EXPECT_EQ(to_float16(-tiny).bits, 0x8000);
  EXPECT_EQ(to_bfloat16(tiny).bits, 0);
  EXPECT_EQ(to_bfloat16(-tiny).bits, 0x8000);
  EXPECT_EQ(to_float8_e4m3(-tiny).bits, 0x80);
  EXPECT_EQ(to_float8_e5m2(-tiny).bits, 0x80);
}

TEST(float_conversions, equality_is_of_patterns) {
  EXPECT_EQ(float16{1}, float16{1});
  EXPECT_NE(float16{0}, float16{0x8000}) << "zeros of both signs differ in bits";
  EXPECT_EQ(to_bfloat16(quiet_nan), to_bfloat16(quiet_nan));
}

}  // namespace
}  // namespace spark_comm
