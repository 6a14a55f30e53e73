// SPDX-License-Identifier: AGPL-3.0-only
// All-reduces inside one kernel, with ranks as streams of one GPU: bits, many rounds, graph
// replays.
#include "support/gpu.hpp"
#include "support/gpu_world.hpp"
#include "support/inline_driver.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/float_types.hpp>
#include <spark_comm/cuda/graph.hpp>
#include <spark_comm/cuda/memory.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/add.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/rms_norm.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spark_comm::kernels {
namespace {

using test::gpu_copy;
using test::typed_buffer;
using enum exchange_protocol;
using namespace std::chrono_literals;

const cuda::stream_ref inline_stream = cuda::stream_ref::default_stream();
constexpr exchange_protocol all_protocols[] = {low_latency, one_shot, two_shot};

segment_limits limits_for(int world) {
  return {.staging_bytes = 1U << 20U, .low_latency_bytes = 65536, .world = world};
}

// One input and one output a rank, and what every output has to be.
template <typename T>
struct exchange_case {
  exchange_case(const test::gpu& gpu, int world, std::size_t count) : sum(count) {
    for (int r = 0; r < world; ++r) {
      const std::size_t offset = static_cast<std::size_t>(r) % (16 / sizeof(T));
      host.push_back(test::random_buffer<T>(count, static_cast<std::uint32_t>(r + 1), offset));
      in.emplace_back(gpu, host.back());
      out.emplace_back(gpu, typed_buffer<T>{count, static_cast<std::size_t>(r) % 2});
    }
    refresh(1);
  }

  // New inputs, and their sum.
  void refresh(std::uint32_t seed) {
    std::vector<const void*> addresses;
    for (std::size_t r = 0; r < host.size(); ++r) {
      test::fill_random(host[r], seed + static_cast<std::uint32_t>(r));
      addresses.push_back(host[r].data());
    }
    add(test::inline_kernels(),
        {data_type_of<T>, addresses, sum.data(), sum.count()},
        inline_stream);
  }

  [[nodiscard]] all_reduce_call call(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return {data_type_of<T>, in[r].data(), out[r].data(), sum.count()};
  }

  std::vector<typed_buffer<T>> host;
  std::vector<gpu_copy<T>> in;
  std::vector<gpu_copy<T>> out;
  typed_buffer<T> sum;
};

template <typename T>
void expect_sums(const test::gpu_world& ranks, const exchange_case<T>& data) {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const typed_buffer<T> got = data.out[r].download(ranks.stream(rank));
    ASSERT_TRUE(got.equals(data.sum)) << "rank " << rank << " of " << ranks.size();
    ASSERT_TRUE(got.is_guarded());
    ASSERT_EQ(ranks.failure(rank), exchange_failure::none);
  }
}

template <typename T>
void upload_inputs(const test::gpu_world& ranks, const exchange_case<T>& data) {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    data.in[r].upload(data.host[r], ranks.stream(rank));
  }
}

template <typename T>
class exchange : public test::gpu_test {};

class exchange_counters : public test::gpu_test {};

using element_types = testing::Types<bfloat16, float16, float>;
TYPED_TEST_SUITE(exchange, element_types);

TYPED_TEST(exchange, gives_all_ranks_the_bits_of_the_host_sum) {
  using T = TypeParam;
  const test::gpu& gpu = this->device();
  for (const int world : {2, 3, 4, 8}) {
    const test::gpu_world ranks{gpu, limits_for(world), 2s};
    for (const std::size_t count : {1U, 3U, 8U, 67U, 4097U, 16384U, 100003U}) {
      const exchange_case<T> data{gpu, world, count};
      for (const exchange_protocol protocol : all_protocols) {
        // Larger ones do not fit the limit, or the device with the blocks of all ranks.
        const std::size_t most = protocol == low_latency || world == 8 ? 65536U : 1U << 20U;
        if (count * sizeof(T) > most) {
          continue;
        }
        upload_inputs(ranks, data);
        for (int rank = 0; rank < world; ++rank) {
          all_reduce(
              gpu.kernels, ranks.segments_of(rank), protocol, data.call(rank), ranks.stream(rank));
        }
        expect_sums(ranks, data);
        ASSERT_FALSE(this->HasFailure())
            << world << " ranks, " << count << " elements, protocol " << static_cast<int>(protocol);
      }
    }
  }
}

TYPED_TEST(exchange, is_right_over_many_rounds_with_new_data) {
  using T = TypeParam;
  const test::gpu& gpu = this->device();
  for (const int world : {2, 4}) {
    const test::gpu_world ranks{gpu, limits_for(world), 2s};
    exchange_case<T> data{gpu, world, 4096};
    for (std::uint32_t round = 0; round < 600; ++round) {
      data.refresh(round);
      upload_inputs(ranks, data);
      for (int rank = 0; rank < world; ++rank) {
        all_reduce(gpu.kernels,
                   ranks.segments_of(rank),
                   all_protocols[round % 3],
                   data.call(rank),
                   ranks.stream(rank));
      }
      expect_sums(ranks, data);
      ASSERT_FALSE(this->HasFailure()) << round;
    }
  }
}

// Each rank's graph holds an all-reduce of every protocol.
TYPED_TEST(exchange, is_right_over_replays_of_a_graph) {
  using T = TypeParam;
  const test::gpu& gpu = this->device();
  const test::gpu_world ranks{gpu, limits_for(2), 2s};
  std::vector<exchange_case<T>> cases;
  for (int i = 0; i < 3; ++i) {
    cases.emplace_back(gpu, 2, std::size_t{2000});
  }
  std::vector<cuda::graph_exec> graphs;
  for (int rank = 0; rank < 2; ++rank) {
    cuda::capture_scope capture{gpu.device, ranks.stream(rank)};
    for (std::size_t i = 0; i < cases.size(); ++i) {
      all_reduce(gpu.kernels,
                 ranks.segments_of(rank),
                 all_protocols[i],
                 cases[i].call(rank),
                 ranks.stream(rank));
    }
    graphs.push_back(capture.end().instantiate());
  }
  for (std::uint32_t replay = 0; replay < 300; ++replay) {
    for (exchange_case<T>& data : cases) {
      data.refresh(replay);
      upload_inputs(ranks, data);
    }
    for (int rank = 0; rank < 2; ++rank) {
      graphs[static_cast<std::size_t>(rank)].launch(ranks.stream(rank));
    }
    for (const exchange_case<T>& data : cases) {
      expect_sums(ranks, data);
    }
    ASSERT_FALSE(this->HasFailure()) << replay;
  }
}

// What the host makes of all partials, and what the ranks' kernels make of their own.
template <typename T>
void check_fused(const test::gpu& gpu, int world, std::size_t rows, std::size_t hidden) {
  const test::gpu_world ranks{gpu, limits_for(world), 2s};
  const std::size_t count = rows * hidden;
  const auto residual = test::random_buffer<T>(count, 50);
  const auto weight = test::random_buffer<T>(hidden, 51);
  const typed_buffer<T> residual_out{count};
  const typed_buffer<float8_e4m3> quantised{count};
  const typed_buffer<float> scales{rows};
  const exchange_case<T> data{gpu, world, count};
  std::vector<const void*> partials;
  for (const typed_buffer<T>& partial : data.host) {
    partials.push_back(partial.data());
  }
  const gpu_copy<T> device_residual{gpu, residual};
  const gpu_copy<T> device_weight{gpu, weight};
  std::vector<gpu_copy<T>> residuals_out;
  std::vector<gpu_copy<float8_e4m3>> outs;
  std::vector<gpu_copy<float>> scales_out;
  for (int rank = 0; rank < world; ++rank) {
    residuals_out.emplace_back(gpu, residual_out);
    outs.emplace_back(gpu, quantised);
    scales_out.emplace_back(gpu, scales);
  }
  rms_norm_call call{.dtype = data_type_of<T>,
                     .partials = partials,
                     .residual = residual.data(),
                     .weight = weight.data(),
                     .residual_out = residual_out.data(),
                     .out = quantised.data(),
                     .scales = scales.data(),
                     .rows = rows,
                     .hidden = hidden};
  rms_norm(test::inline_kernels(), call, inline_stream);
  upload_inputs(ranks, data);
  call.residual = device_residual.data();
  call.weight = device_weight.data();
  for (int rank = 0; rank < world; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const std::array<const void*, 1> own = {data.in[r].data()};
    call.partials = own;
    call.residual_out = residuals_out[r].data();
    call.out = outs[r].data();
    call.scales = scales_out[r].data();
    one_shot_rms_norm(gpu.kernels, ranks.segments_of(rank), call, ranks.stream(rank));
  }
  for (int rank = 0; rank < world; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    EXPECT_TRUE(residuals_out[r].download(ranks.stream(rank)).equals(residual_out)) << rank;
    EXPECT_TRUE(outs[r].download(ranks.stream(rank)).equals(quantised)) << rank;
    EXPECT_TRUE(scales_out[r].download(ranks.stream(rank)).equals(scales)) << rank;
    ASSERT_EQ(ranks.failure(rank), exchange_failure::none);
  }
}

TYPED_TEST(exchange, fused_norm_gives_all_ranks_the_bits_of_the_host) {
  for (const int world : {2, 3, 8}) {
    for (const std::size_t hidden : {7U, 264U, 4096U, 8192U, 16392U}) {
      for (const std::size_t rows : {1U, 5U}) {
        check_fused<TypeParam>(this->device(), world, rows, hidden);
        ASSERT_FALSE(this->HasFailure()) << world << ' ' << rows << ' ' << hidden;
      }
    }
  }
  check_fused<TypeParam>(this->device(), 2, 300, 512);  // more rows than blocks
}

// The next launch may have any number of blocks, so each must find its counter advanced.
TEST_F(exchange_counters, are_all_advanced_by_one_block_of_one_warp) {
  const test::gpu_world ranks{device(), limits_for(2), 2s};
  const exchange_case<float> data{device(), 2, 7};
  const gpu_copy<float> operand{device(), typed_buffer<float>{7}};
  const gpu_copy<float> out{device(), typed_buffer<float>{7}};
  upload_inputs(ranks, data);
  for (int rank = 0; rank < 2; ++rank) {
    const std::array<const void*, 1> own = {data.in[static_cast<std::size_t>(rank)].data()};
    one_shot_rms_norm(device().kernels,
                      ranks.segments_of(rank),
                      {.dtype = data_type::float32,
                       .partials = own,
                       .residual = operand.data(),
                       .weight = operand.data(),
                       .residual_out = data.out[static_cast<std::size_t>(rank)].data(),
                       .out = out.data(),
                       .rows = 1,
                       .hidden = 7},
                      ranks.stream(rank));
  }
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::uint64_t> rounds(max_exchange_blocks);
    cuda::copy_async(device().device,
                     rounds.data(),
                     ranks.segments_of(rank).addresses[static_cast<std::size_t>(rank)],
                     rounds.size() * sizeof(std::uint64_t),
                     ranks.stream(rank));
    device().wait(ranks.stream(rank));
    EXPECT_EQ(rounds, std::vector<std::uint64_t>(max_exchange_blocks, 1)) << rank;
  }
}

}  // namespace
}  // namespace spark_comm::kernels
