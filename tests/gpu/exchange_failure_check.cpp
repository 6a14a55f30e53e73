// SPDX-License-Identifier: AGPL-3.0-only
// On a GPU: a peer that does not come ends the wait at its limit, and so does abort; the segment
// stays poisoned and the device stays usable.
#include "support/gpu.hpp"
#include "support/gpu_world.hpp"
#include "support/typed_buffer.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/kernels/one_shot.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace spark_comm::kernels {
namespace {

using test::gpu_copy;
using test::typed_buffer;
using enum exchange_protocol;
using namespace std::chrono_literals;

constexpr segment_limits limits{.staging_bytes = 65536, .low_latency_bytes = 16384, .world = 2};

class exchange_failure_on_gpu : public test::gpu_test,
                                public testing::WithParamInterface<exchange_protocol> {
 protected:
  // Launches on rank 1 of 2 only.
  void launch(const test::gpu_world& ranks, const gpu_copy<float>& data) const {
    all_reduce(device().kernels,
               ranks.segments_of(1),
               GetParam(),
               {data_type::float32, data.data(), data.data(), 2048},
               ranks.stream(1));
  }
};

INSTANTIATE_TEST_SUITE_P(protocols,
                         exchange_failure_on_gpu,
                         testing::Values(low_latency, one_shot, two_shot));

TEST_P(exchange_failure_on_gpu, a_missing_peer_is_named_after_the_limit) {
  const test::gpu_world ranks{device(), limits, 50ms};
  const gpu_copy<float> data{device(), typed_buffer<float>{2048}};
  const auto started = std::chrono::steady_clock::now();
  launch(ranks, data);
  device().wait(ranks.stream(1));
  const auto took = std::chrono::steady_clock::now() - started;
  EXPECT_GE(took, 50ms);
  EXPECT_LE(took, 500ms);
  EXPECT_EQ(ranks.failure(1), exchange_failure::timed_out);
  EXPECT_EQ(ranks.words(1).status.peer, 0U);
  EXPECT_EQ(ranks.words(1).status.round, 1U);

  const auto again = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    launch(ranks, data);
  }
  device().wait(ranks.stream(1));
  EXPECT_LE(std::chrono::steady_clock::now() - again, 45ms) << "poisoned launches must not wait";
}

TEST_P(exchange_failure_on_gpu, abort_ends_a_wait_that_has_ten_seconds) {
  const test::gpu_world ranks{device(), limits, 10s};
  const gpu_copy<float> data{device(), typed_buffer<float>{2048}};
  const auto started = std::chrono::steady_clock::now();
  launch(ranks, data);
  EXPECT_EQ(ranks.stream(1).wait(20ms), wait_result::timed_out);
  std::atomic_ref<std::uint32_t>{ranks.words(1).abort_word}.store(1, std::memory_order_relaxed);
  device().wait(ranks.stream(1));
  EXPECT_LE(std::chrono::steady_clock::now() - started, 1s);
  EXPECT_EQ(ranks.failure(1), exchange_failure::aborted);
}

}  // namespace
}  // namespace spark_comm::kernels
