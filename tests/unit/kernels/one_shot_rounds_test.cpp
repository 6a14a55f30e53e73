// SPDX-License-Identifier: AGPL-3.0-only
// Many rounds with new data and ranks that run ahead of each other: no flag of an older round is
// taken for a new one, and no slot is written while somebody reads it. Meant for ThreadSanitizer
// too.
#include "segment_world.hpp"
#include "support/inline_driver.hpp"

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/cuda/stream_ref.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <thread>
#include <vector>

namespace spark_comm::kernels {
namespace {

using enum exchange_protocol;

#if defined(__SANITIZE_THREAD__)
constexpr int rounds_scale = 10;
#else
constexpr int rounds_scale = 1;
#endif

// Small integers, so that every sum is exact: a stale or torn value shows.
float value_of(int rank, int round, std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>(round) * 2654435761U +
                     static_cast<std::uint32_t>(rank) * 40503U + static_cast<std::uint32_t>(i);
  return static_cast<float>(mixed >> 12U);
}

// What each rank does between its launches.
class random_delay {
 public:
  explicit random_delay(int rank) : random_(static_cast<std::uint32_t>(rank) + 1) {}

  void maybe_wait() {
    const std::uint32_t draw = static_cast<std::uint32_t>(random_()) % 1000;
    if (draw < 10) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{draw * 20};
      while (std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
      }
    }
  }

 private:
  std::mt19937 random_;
};

// How many elements round `round` has, the same on all ranks: the grid changes from round to round.
std::size_t count_of(int round) {
  constexpr std::array<std::size_t, 5> counts = {1, 3, 64, 17, 2100};
  return counts[static_cast<std::size_t>(round % 11) % counts.size()];
}

struct plan {
  int world;
  int rounds;
  std::vector<exchange_protocol> protocols;  // taken in turn
};

void run_rank(const segment_world& ranks, const plan& p, int rank, int& wrong) {
  const kernel_module loaded = test::inline_kernels();
  const peer_segments segments = ranks.segments_of(rank);
  random_delay delay{rank};
  std::array<float, 2100> data{};
  for (int round = 0; round < p.rounds; ++round) {
    const std::size_t count = count_of(round);
    for (std::size_t i = 0; i < count; ++i) {
      data[i] = value_of(rank, round, i);
    }
    delay.maybe_wait();
    const auto turn = static_cast<std::size_t>(round) % p.protocols.size();
    all_reduce(loaded,
               segments,
               p.protocols[turn],
               {data_type::float32, data.data(), data.data(), count},
               cuda::stream_ref::default_stream());
    delay.maybe_wait();
    for (std::size_t i = 0; i < count; ++i) {
      float expected = 0;
      for (int r = 0; r < p.world; ++r) {
        expected += value_of(r, round, i);
      }
      wrong += data[i] == expected ? 0 : 1;
    }
    if (wrong != 0) {
      return;
    }
  }
}

void expect_all_right(const plan& p, std::uint64_t rounds_before = 0) {
  const segment_world ranks{{.staging_bytes = 16384, .low_latency_bytes = 16384, .world = p.world}};
  for (int rank = 0; rank < p.world; ++rank) {
    std::ranges::fill(ranks.header(rank).rounds, rounds_before);
    std::ranges::fill(ranks.header(rank).low_latency_rounds, rounds_before);
  }
  std::vector<int> wrong(static_cast<std::size_t>(p.world));
  ranks.run([&](int rank) { run_rank(ranks, p, rank, wrong[static_cast<std::size_t>(rank)]); });
  for (int rank = 0; rank < p.world; ++rank) {
    EXPECT_EQ(wrong[static_cast<std::size_t>(rank)], 0) << rank;
    EXPECT_EQ(ranks.status(rank).failure, exchange_failure::none);
  }
}

TEST(one_shot_rounds, a_hundred_thousand_of_two_ranks_are_right) {
  expect_all_right({.world = 2, .rounds = 100000 / rounds_scale, .protocols = {one_shot}});
}

TEST(one_shot_rounds, low_latency_ones_are_right) {
  expect_all_right({.world = 2, .rounds = 50000 / rounds_scale, .protocols = {low_latency}});
}

TEST(one_shot_rounds, protocols_of_one_segment_may_alternate) {
  expect_all_right({.world = 2,
                    .rounds = 20000 / rounds_scale,
                    .protocols = {one_shot, low_latency, two_shot, two_shot, one_shot}});
}

TEST(one_shot_rounds, four_ranks_on_fewer_processors_are_right) {
  expect_all_right(
      {.world = 4, .rounds = 4000 / rounds_scale, .protocols = {one_shot, two_shot, low_latency}});
}

TEST(one_shot_rounds, counting_past_32_bits_changes_nothing) {
  constexpr std::uint64_t before_wrap = 0xffffffffU - 20;
  expect_all_right({.world = 2, .rounds = 60, .protocols = {low_latency}}, before_wrap);
  expect_all_right({.world = 2, .rounds = 60, .protocols = {one_shot, two_shot}}, before_wrap);
}

}  // namespace
}  // namespace spark_comm::kernels
