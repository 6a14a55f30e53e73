// SPDX-License-Identifier: AGPL-3.0-only
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::random_buffer;
using test::typed_buffer;

const cuda::stream_ref stream = cuda::stream_ref::default_stream();

// The buffers of one call with two partials.
template <typename T>
struct norm_case {
  norm_case(std::size_t row_count, std::size_t width, std::size_t offset = 0)
      : rows(row_count),
        hidden(width),
        a(random_buffer<T>(rows * hidden, 1, offset)),
        b(random_buffer<T>(rows * hidden, 2)),
        residual(random_buffer<T>(rows * hidden, 3, offset)),
        weight(random_buffer<T>(hidden, 4)),
        residual_out(rows * hidden, offset),
        out(rows * hidden),
        quantised(rows * hidden, offset),
        scales(rows) {}

  [[nodiscard]] rms_norm_call call() const {
    return {.dtype = data_type_of<T>,
            .partials = partials,
            .residual = residual.data(),
            .weight = weight.data(),
            .residual_out = residual_out.data(),
            .out = out.data(),
            .rows = rows,
            .hidden = hidden,
            .epsilon = 1e-6F};
  }

  [[nodiscard]] bool is_guarded() const {
    return residual_out.is_guarded() && out.is_guarded() && quantised.is_guarded() &&
           scales.is_guarded();
  }

  std::size_t rows;
  std::size_t hidden;
  typed_buffer<T> a;
  typed_buffer<T> b;
  typed_buffer<T> residual;
  typed_buffer<T> weight;
  typed_buffer<T> residual_out;
  typed_buffer<T> out;
  typed_buffer<float8_e4m3> quantised;
  typed_buffer<float> scales;
  std::array<const void*, 2> partials = {a.data(), b.data()};
};

// Root mean square of a row of the rounded residual_out, in fp64.
template <typename T>
double rms_of(const norm_case<T>& c, std::size_t row) {
  double squares = 0;
  for (std::size_t i = 0; i < c.hidden; ++i) {
    const auto x = static_cast<double>(test::to_float(c.residual_out[row * c.hidden + i]));
    squares += x * x;
  }
  return std::sqrt(squares / static_cast<double>(c.hidden) + 1e-6);
}

template <typename T>
class rms_norm : public testing::Test {
 protected:
  // Half a unit of the last place.
  static constexpr double unit =
      sizeof(T) == 4 ? 0x1p-24 : (std::is_same_v<T, float16> ? 0x1p-11 : 0x1p-8);
};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(rms_norm, element_types);

TYPED_TEST(rms_norm, is_within_its_bound_of_the_exact_result) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  for (const std::size_t hidden : {1U, 7U, 8U, 31U, 100U, 2048U, 5120U, 8192U, 16384U, 20000U}) {
    const norm_case<T> c{3, hidden};
    kernels::rms_norm(loaded, c.call(), stream);
    for (std::size_t row = 0; row < c.rows; ++row) {
      const double rms = rms_of(c, row);
      for (std::size_t i = 0; i < hidden; ++i) {
        const std::size_t at = row * hidden + i;
        const auto x = static_cast<double>(test::to_float(c.residual_out[at]));
        const double exact = x / rms * static_cast<double>(test::to_float(c.weight[i]));
        // The sum of squares: hidden / slots + 13 additions and a product, halved by the root; the
        // mean, the root, its inverse and two products; then the rounding to T.
        const double steps = (static_cast<double>(hidden) / 256 + 14) / 2 + 6;
        const double bound = std::fabs(exact) * (steps * 0x1p-24 + this->unit * 1.01) + 0x1p-24;
        ASSERT_LE(std::fabs(static_cast<double>(test::to_float(c.out[at])) - exact), bound)
            << hidden << ' ' << at;
      }
    }
    ASSERT_TRUE(c.is_guarded());
  }
}

TYPED_TEST(rms_norm, gives_the_bits_of_add_then_residual_norm) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  for (const std::size_t hidden : {9U, 4096U, 8200U}) {
    const norm_case<T> fused{2, hidden};
    kernels::rms_norm(loaded, fused.call(), stream);

    const norm_case<T> apart{2, hidden};
    const typed_buffer<T> sum{2 * hidden};
    kernels::add(loaded,
                 {.dtype = data_type_of<T>,
                  .inputs = apart.partials,
                  .out = sum.data(),
                  .count_elements = 2 * hidden},
                 stream);
    rms_norm_call call = apart.call();
    const std::array<const void*, 1> reduced = {sum.data()};
    call.partials = reduced;
    kernels::rms_norm(loaded, call, stream);
    EXPECT_TRUE(fused.out.equals(apart.out)) << hidden;
    EXPECT_TRUE(fused.residual_out.equals(apart.residual_out)) << hidden;
  }
}

TYPED_TEST(rms_norm, gives_the_same_bits_at_every_alignment) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  const norm_case<T> aligned{3, 136};
  kernels::rms_norm(loaded, aligned.call(), stream);
  for (std::size_t offset = 1; offset < 16 / sizeof(T); ++offset) {
    const norm_case<T> askew{3, 136, offset};
    kernels::rms_norm(loaded, askew.call(), stream);
    EXPECT_TRUE(askew.out.equals(aligned.out)) << offset;
    EXPECT_TRUE(askew.residual_out.equals(aligned.residual_out)) << offset;
    EXPECT_TRUE(askew.is_guarded());
  }
}

TYPED_TEST(rms_norm, may_write_over_residual_and_partial) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  const norm_case<T> apart{2, 1000};
  kernels::rms_norm(loaded, apart.call(), stream);
  const norm_case<T> in_place{2, 1000};
  rms_norm_call call = in_place.call();
  call.residual_out = in_place.residual.data();
  call.out = in_place.b.data();
  kernels::rms_norm(loaded, call, stream);
  EXPECT_TRUE(in_place.residual.equals(apart.residual_out));
  EXPECT_TRUE(in_place.b.equals(apart.out));
}

TYPED_TEST(rms_norm, quantises_the_rounded_row_with_its_own_scale) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  const norm_case<T> plain{4, 500};
  kernels::rms_norm(loaded, plain.call(), stream);
  const norm_case<T> c{4, 500, 1};
  rms_norm_call call = c.call();
  call.out = c.quantised.data();
  call.scales = c.scales.data();
  kernels::rms_norm(loaded, call, stream);
  for (std::size_t row = 0; row < c.rows; ++row) {
    float largest = 0;
    for (std::size_t i = 0; i < c.hidden; ++i) {
      largest = std::max(largest, std::fabs(test::to_float(plain.out[row * c.hidden + i])));
    }
    EXPECT_EQ(c.scales[row], largest / 448.0F);
    for (std::size_t i = 0; i < c.hidden; ++i) {
      const std::size_t at = row * c.hidden + i;
      const float expected = test::to_float(plain.out[at]) / c.scales[row];
      ASSERT_EQ(c.quantised[at].bits, to_float8_e4m3(expected).bits) << at;
    }
  }
  EXPECT_TRUE(c.is_guarded());
}

// One row of 64 with one partial; the values of the partial are set by the test.
struct quantised_row {
  quantised_row() {
    for (std::size_t i = 0; i < 64; ++i) {
      weight[i] = 1.0F;
    }
  }

  void run() const {
    const std::array<const void*, 1> partials = {partial.data()};
    kernels::rms_norm(test::inline_kernels(),
                      {.dtype = data_type::float32,
                       .partials = partials,
                       .residual = residual.data(),
                       .weight = weight.data(),
                       .residual_out = residual_out.data(),
                       .out = out.data(),
                       .scales = scale.data(),
                       .rows = 1,
                       .hidden = 64},
                      stream);
  }

  typed_buffer<float> partial{64};
  typed_buffer<float> residual{64};
  typed_buffer<float> weight{64};
  typed_buffer<float> residual_out{64};
  typed_buffer<float8_e4m3> out{64};
  typed_buffer<float> scale{1};
};

TEST(rms_norm_fp8, a_row_of_zeros_has_scale_one_and_stays_zero) {
  const quantised_row row;
  row.run();
  EXPECT_EQ(row.scale[0], 1.0F);
  for (const float8_e4m3 q : row.out.elements()) {
    EXPECT_EQ(q.bits, 0);
  }
}

TEST(rms_norm_fp8, the_largest_value_becomes_448) {
  const quantised_row row;
  test::fill_random(row.partial, 5);
  row.partial[7] = -20.0F;
  row.run();
  EXPECT_EQ(to_float(row.out[7]), -448.0F);
}

TEST(rms_norm_fp8, nan_spoils_the_row_visibly) {
  const quantised_row row;
  row.partial[3] = std::numeric_limits<float>::quiet_NaN();
  row.run();
  EXPECT_EQ(row.scale[0], 1.0F);  // no number is left to scale by
  EXPECT_EQ(row.out[3].bits, 0x7f);
}

TEST(rms_norm_arguments, no_rows_launch_nothing) {
  const norm_case<bfloat16> c{1, 64};
  rms_norm_call call = c.call();
  call.rows = 0;
  kernels::rms_norm(test::inline_kernels(), call, stream);
  EXPECT_TRUE(c.out.equals(typed_buffer<bfloat16>{64}));
}

TEST(rms_norm_arguments, wrong_ones_are_refused_before_anything_is_launched) {
  const kernel_module loaded = test::inline_kernels();
  const norm_case<float> c{2, 64};
  const std::vector<const void*> crowd(9, c.a.data());
  using edit = std::function<void(rms_norm_call&)>;
  const std::vector<std::pair<std::string, edit>> edits = {
      {"type", [](rms_norm_call& x) { x.dtype = data_type::int32; }},
      {"no partial", [](rms_norm_call& x) { x.partials = {}; }},
      {"nine partials", [&](rms_norm_call& x) { x.partials = crowd; }},
      {"no hidden", [](rms_norm_call& x) { x.hidden = 0; }},
      {"too much hidden", [](rms_norm_call& x) { x.hidden = (1U << 24U) + 1; }},
      {"negative epsilon", [](rms_norm_call& x) { x.epsilon = -1.0F; }},
      {"epsilon is no number",
       [](rms_norm_call& x) { x.epsilon = std::numeric_limits<float>::quiet_NaN(); }},
      {"no residual", [](rms_norm_call& x) { x.residual = nullptr; }},
      {"no weight", [](rms_norm_call& x) { x.weight = nullptr; }},
      {"no out", [](rms_norm_call& x) { x.out = nullptr; }},
      {"out is residual_out", [](rms_norm_call& x) { x.out = x.residual_out; }},
      {"residual overlaps", [&](rms_norm_call& x) { x.residual_out = c.residual.data() + 1; }},
      {"askew scales",
       [&](rms_norm_call& x) {
         x.scales = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(c.scales.data()) + 1);
       }},
  };
  for (const auto& [name, change] : edits) {
    rms_norm_call call = c.call();
    change(call);
    try {
      kernels::rms_norm(loaded, call, stream);
      ADD_FAILURE() << name;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument) << name;
    }
  }
  EXPECT_TRUE(c.out.equals(typed_buffer<float>{128}));
}

}  // namespace
}  // namespace spark_comm::kernels
