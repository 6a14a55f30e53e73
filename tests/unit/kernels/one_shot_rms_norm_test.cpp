// SPDX-License-Identifier: AGPL-3.0-only
#include "segment_world.hpp"
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::random_buffer;
using test::typed_buffer;

const cuda::stream_ref stream = cuda::stream_ref::default_stream();

template <typename T>
class one_shot_rms_norm : public testing::Test {};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(one_shot_rms_norm, element_types);

// What the local kernel makes of all partials, and what each rank gets.
template <typename T>
struct fused_case {
  fused_case(int world, std::size_t row_count, std::size_t width)
      : rows(row_count),
        hidden(width),
        residual(random_buffer<T>(rows * hidden, 100)),
        weight(random_buffer<T>(hidden, 101)),
        residual_out(rows * hidden),
        quantised(rows * hidden),
        scales(rows) {
    for (int r = 0; r < world; ++r) {
      partials.push_back(random_buffer<T>(
          rows * hidden, static_cast<std::uint32_t>(r + 1), static_cast<std::size_t>(r) % 3));
      addresses.push_back(partials.back().data());
    }
    kernels::rms_norm(
        test::inline_kernels(), call(addresses, residual_out, quantised, scales), stream);
  }

  [[nodiscard]] rms_norm_call call(std::span<const void* const> inputs,
                                   const typed_buffer<T>& to_residual,
                                   const typed_buffer<float8_e4m3>& to_quantised,
                                   const typed_buffer<float>& to_scales) const {
    return {.dtype = data_type_of<T>,
            .partials = inputs,
            .residual = residual.data(),
            .weight = weight.data(),
            .residual_out = to_residual.data(),
            .out = to_quantised.data(),
            .scales = to_scales.data(),
            .rows = rows,
            .hidden = hidden};
  }

  std::size_t rows;
  std::size_t hidden;
  typed_buffer<T> residual;
  typed_buffer<T> weight;
  typed_buffer<T> residual_out;
  typed_buffer<float8_e4m3> quantised;
  typed_buffer<float> scales;
  std::vector<typed_buffer<T>> partials;
  std::vector<const void*> addresses;
};

TYPED_TEST(one_shot_rms_norm, gives_all_ranks_the_bits_of_the_local_norm_of_all_partials) {
  using T = TypeParam;
  const kernel_module loaded = test::inline_kernels();
  for (const int world : {2, 3}) {
    const segment_world ranks{{.staging_bytes = 1U << 20U, .low_latency_bytes = 0, .world = world}};
    for (const std::size_t hidden : {5U, 264U, 4096U, 16392U}) {
      for (const std::size_t rows : {1U, 3U, 150U}) {
        if (rms_norm_staging_bytes(rows, hidden, data_type_of<T>) > 1U << 20U) {
          continue;
        }
        const fused_case<T> expected{world, rows, hidden};
        ranks.run([&](int rank) {
          const std::array<const void*, 1> own = {
              expected.partials[static_cast<std::size_t>(rank)].data()};
          const typed_buffer<T> residual_out{rows * hidden};
          const typed_buffer<float8_e4m3> quantised{rows * hidden};
          const typed_buffer<float> scales{rows};
          kernels::one_shot_rms_norm(loaded,
                                     ranks.segments_of(rank),
                                     expected.call(own, residual_out, quantised, scales),
                                     stream);
          EXPECT_TRUE(residual_out.equals(expected.residual_out)) << hidden << ' ' << rows;
          EXPECT_TRUE(quantised.equals(expected.quantised)) << hidden << ' ' << rows;
          EXPECT_TRUE(scales.equals(expected.scales)) << hidden << ' ' << rows;
          EXPECT_TRUE(residual_out.is_guarded() && quantised.is_guarded());
        });
      }
    }
  }
}

TEST(one_shot_rms_norm_arguments, more_than_one_partial_or_too_many_rows_are_refused) {
  const segment_world ranks{{.staging_bytes = 4096, .low_latency_bytes = 0, .world = 2}};
  const fused_case<float> data{2, 17, 64};
  const std::array<const void*, 1> own = {data.addresses[0]};
  rms_norm_call call = data.call(data.addresses, data.residual_out, data.quantised, data.scales);
  call.rows = 16;
  EXPECT_THROW(
      kernels::one_shot_rms_norm(test::inline_kernels(), ranks.segments_of(0), call, stream),
      error);
  call.partials = own;
  call.rows = 17;
  EXPECT_THROW(
      kernels::one_shot_rms_norm(test::inline_kernels(), ranks.segments_of(0), call, stream),
      error);
  EXPECT_EQ(ranks.header(0).rounds[0], 0U);
}

}  // namespace
}  // namespace spark_comm::kernels
