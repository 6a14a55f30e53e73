// SPDX-License-Identifier: AGPL-3.0-only
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::random_buffer;
using test::typed_buffer;

const cuda::stream_ref stream = cuda::stream_ref::default_stream();

template <typename T>
class add : public testing::Test {};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(add, element_types);

TYPED_TEST(add, touches_its_elements_only_at_every_alignment_and_length) {
  using T = TypeParam;
  const kernel_module kernels = test::inline_kernels();
  for (std::size_t count = 0; count <= 67; ++count) {
    for (std::size_t offset = 0; offset < 16 / sizeof(T); ++offset) {
      const auto a = random_buffer<T>(count, 1, offset);
      const auto b = random_buffer<T>(count, 2);
      const typed_buffer<T> out{count, offset / 2};
      const std::array<const void*, 2> inputs = {a.data(), b.data()};
      kernels::add(
          kernels,
          {.dtype = data_type_of<T>, .inputs = inputs, .out = out.data(), .count_elements = count},
          stream);
      for (std::size_t i = 0; i < count; ++i) {
        const T expected = test::from_float<T>(test::to_float(a[i]) + test::to_float(b[i]));
        ASSERT_EQ(test::to_float(out[i]), test::to_float(expected)) << count << ' ' << i;
      }
      ASSERT_TRUE(out.is_guarded() && a.is_guarded() && b.is_guarded()) << count << ' ' << offset;
    }
  }
}

TYPED_TEST(add, is_within_one_rounding_of_the_exact_sum_of_eight) {
  using T = TypeParam;
  const kernel_module kernels = test::inline_kernels();
  constexpr std::size_t count = 5000;
  std::vector<typed_buffer<T>> inputs;
  std::vector<const void*> addresses;
  for (std::uint32_t r = 0; r < 8; ++r) {
    inputs.push_back(random_buffer<T>(count, r + 1));
    addresses.push_back(inputs.back().data());
  }
  const typed_buffer<T> out{count};
  kernels::add(
      kernels,
      {.dtype = data_type_of<T>, .inputs = addresses, .out = out.data(), .count_elements = count},
      stream);
  // Half a unit of the last place of T, and seven fp32 roundings of partial sums.
  const double unit = sizeof(T) == 4 ? 0x1p-24 : (std::is_same_v<T, float16> ? 0x1p-11 : 0x1p-8);
  for (std::size_t i = 0; i < count; ++i) {
    double exact = 0;
    double magnitude = 0;
    for (const auto& input : inputs) {
      exact += static_cast<double>(test::to_float(input[i]));
      magnitude += std::fabs(static_cast<double>(test::to_float(input[i])));
    }
    const double bound = std::fabs(exact) * unit + magnitude * 8 * 0x1p-24 + 0x1p-25;
    ASSERT_LE(std::fabs(static_cast<double>(test::to_float(out[i])) - exact), bound) << i;
  }
}

TYPED_TEST(add, may_write_over_any_input) {
  using T = TypeParam;
  const kernel_module kernels = test::inline_kernels();
  constexpr std::size_t count = 3001;
  for (std::size_t over = 0; over < 3; ++over) {
    const std::array buffers = {
        random_buffer<T>(count, 1), random_buffer<T>(count, 2), random_buffer<T>(count, 3)};
    const std::array<const void*, 3> inputs = {
        buffers[0].data(), buffers[1].data(), buffers[2].data()};
    const typed_buffer<T> apart{count};
    add_call call{
        .dtype = data_type_of<T>, .inputs = inputs, .out = apart.data(), .count_elements = count};
    kernels::add(kernels, call, stream);
    call.out = buffers[over].data();
    kernels::add(kernels, call, stream);
    EXPECT_TRUE(buffers[over].equals(apart)) << over;
  }
}

TEST(add_bf16, rounds_once_whichever_rank_holds_the_large_value) {
  const kernel_module kernels = test::inline_kernels();
  const bfloat16 large = to_bfloat16(256.0F);
  const bfloat16 small = to_bfloat16(1.0F);
  for (std::size_t holder = 0; holder < 4; ++holder) {
    std::array<bfloat16, 4> values = {small, small, small, small};
    values[holder] = large;
    const std::array<const void*, 4> inputs = {&values[0], &values[1], &values[2], &values[3]};
    bfloat16 out{};
    kernels::add(kernels, {.inputs = inputs, .out = &out, .count_elements = 1}, stream);
    EXPECT_EQ(to_float(out), 260.0F) << holder;
  }
}

TEST(add_bf16, overflows_to_infinity) {
  const kernel_module kernels = test::inline_kernels();
  const bfloat16 largest{0x7f62};
  const std::array<const void*, 2> inputs = {&largest, &largest};
  bfloat16 out{};
  kernels::add(kernels, {.inputs = inputs, .out = &out, .count_elements = 1}, stream);
  EXPECT_EQ(out.bits, 0x7f80);
}

TEST(add_arguments, wrong_ones_are_refused_before_anything_is_launched) {
  const kernel_module kernels = test::inline_kernels();
  const auto a = random_buffer<float>(64, 1);
  const auto b = random_buffer<float>(64, 2);
  const typed_buffer<float> out{64};
  const std::array<const void*, 2> good = {a.data(), b.data()};
  const std::array<const void*, 1> lonely = {a.data()};
  const std::array<const void*, 2> with_null = {a.data(), nullptr};
  const std::array<const void*, 2> askew = {a.data(),
                                            reinterpret_cast<const std::byte*>(b.data()) + 2};
  const std::vector<const void*> crowd(9, a.data());
  const std::vector<add_call> wrong = {
      {data_type::float64, good, out.data(), 8},
      {data_type::float32, lonely, out.data(), 8},
      {data_type::float32, crowd, out.data(), 8},
      {data_type::float32, with_null, out.data(), 8},
      {data_type::float32, askew, out.data(), 8},
      {data_type::float32, good, nullptr, 8},
      {data_type::float32, good, a.data() + 1, 8},
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    try {
      kernels::add(kernels, wrong[i], stream);
      ADD_FAILURE() << i;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument) << i;
    }
  }
  EXPECT_TRUE(out.equals(typed_buffer<float>{64}));
}

}  // namespace
}  // namespace spark_comm::kernels
