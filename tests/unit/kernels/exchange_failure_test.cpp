// SPDX-License-Identifier: AGPL-3.0-only
// A peer that does not come, and an abort: the kernel ends, says who was missing, and stays
// poisoned.
#include "segment_world.hpp"
#include "support/inline_driver.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace spark_comm::kernels {
namespace {

using enum exchange_protocol;
using namespace std::chrono_literals;

constexpr segment_limits limits{.staging_bytes = 4096, .low_latency_bytes = 256, .world = 3};

// Rank 1 of 3 launches with one element.
float launch(const segment_world& ranks, exchange_protocol protocol, int rank = 1) {
  const float in = 1.0F;
  float out = -1.0F;
  all_reduce(test::inline_kernels(),
             ranks.segments_of(rank),
             protocol,
             {data_type::float32, &in, &out, 1},
             cuda::stream_ref::default_stream());
  return out;
}

class exchange_failure_of : public testing::TestWithParam<exchange_protocol> {};

INSTANTIATE_TEST_SUITE_P(protocols,
                         exchange_failure_of,
                         testing::Values(low_latency, one_shot, two_shot));

TEST_P(exchange_failure_of, a_missing_peer_is_named_after_the_limit) {
  const segment_world ranks{limits, 5ms};
  const auto started = std::chrono::steady_clock::now();
  EXPECT_EQ(launch(ranks, GetParam()), -1.0F);
  EXPECT_GE(std::chrono::steady_clock::now() - started, 5ms);
  const exchange_status& status = ranks.status(1);
  EXPECT_EQ(status.failure, exchange_failure::timed_out);
  EXPECT_EQ(status.peer, 0U);
  EXPECT_EQ(status.block, 0U);
  EXPECT_EQ(status.round, 1U);
}

TEST_P(exchange_failure_of, poison_makes_later_launches_return_at_once) {
  const segment_world ranks{limits, 1ms};
  static_cast<void>(launch(ranks, GetParam()));
  // A limit of an hour: did the launch wait, the test would time out.
  peer_segments segments = ranks.segments_of(1);
  segments.wait_limit = 1h;
  for (const exchange_protocol next : {low_latency, one_shot, two_shot}) {
    const float in = 1.0F;
    float out = -1.0F;
    all_reduce(test::inline_kernels(),
               segments,
               next,
               {data_type::float32, &in, &out, 1},
               cuda::stream_ref::default_stream());
    EXPECT_EQ(out, -1.0F);
  }
  EXPECT_EQ(ranks.status(1).round, 1U) << "the first report stays";
}

TEST_P(exchange_failure_of, abort_ends_a_wait_that_has_an_hour) {
  const segment_world ranks{limits, 1h};
  std::jthread waiting{[&] { EXPECT_EQ(launch(ranks, GetParam()), -1.0F); }};
  std::atomic_ref<std::uint32_t>{ranks.abort_word(1)}.store(1, std::memory_order_relaxed);
  waiting.join();
  EXPECT_EQ(ranks.status(1).failure, exchange_failure::aborted);
}

TEST_P(exchange_failure_of, a_late_peer_within_the_limit_is_no_failure) {
  const segment_world ranks{limits, 20s};
  std::array<float, 3> out{};
  ranks.run([&](int rank) {
    if (rank == 2) {
      std::this_thread::yield();
    }
    out[static_cast<std::size_t>(rank)] = launch(ranks, GetParam(), rank);
  });
  EXPECT_EQ(out, (std::array<float, 3>{3.0F, 3.0F, 3.0F}));
}

TEST(exchange_poison, one_rank_that_gave_up_leaves_the_others_to_their_own_limit) {
  const segment_world ranks{limits, 2ms};
  static_cast<void>(launch(ranks, one_shot, 0));
  static_cast<void>(launch(ranks, one_shot, 1));
  EXPECT_EQ(ranks.status(0).peer, 1U);
  EXPECT_EQ(ranks.status(1).peer, 2U) << "rank 0 had published before it gave up";
  EXPECT_EQ(ranks.status(2).failure, exchange_failure::none);
}

}  // namespace
}  // namespace spark_comm::kernels
