// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/kernels/detail/geometry.hpp>
#include <spark_comm/kernels/one_shot.hpp>
#include <spark_comm/kernels/peer_segment.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::kernels {
namespace {

using detail::launch_shape;

const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(geometry, takes_the_widest_vector_that_every_address_allows) {
  struct row {
    std::uintptr_t first;
    std::uintptr_t second;
    std::size_t element_bytes;
    std::size_t expected;
  };

  for (const row& r : {row{4096, 8192, 2, 16},
                       row{4096, 8192 + 8, 2, 4},
                       row{4096 + 4, 8192, 2, 4},
                       row{4096, 8192 + 2, 2, 2},
                       row{4096 + 6, 8192 + 6, 2, 2},
                       row{4096, 8192, 4, 16},
                       row{4096, 8192 + 12, 4, 4}}) {
    const std::array<const void*, 2> addresses = {at(r.first), at(r.second)};
    EXPECT_EQ(detail::vector_bytes(addresses, r.element_bytes), r.expected)
        << r.first << ' ' << r.second << ' ' << r.element_bytes;
  }
}

TEST(geometry, null_does_not_spoil_alignment) {
  const std::array<const void*, 2> addresses = {at(4096), nullptr};
  EXPECT_TRUE(detail::are_aligned(addresses, 16));
}

TEST(geometry, add_fills_the_device_and_no_more) {
  struct row {
    std::size_t bytes;
    std::size_t vector;
    launch_shape expected;
  };

  for (const row& r : {row{2, 16, {1, 256, 0}},
                       row{4096, 16, {1, 256, 0}},
                       row{4096 + 2, 16, {2, 256, 0}},
                       row{4096, 4, {4, 256, 1}},
                       row{4096, 2, {8, 256, 2}},
                       row{std::size_t{1} << 30U, 16, {80, 256, 0}}}) {
    EXPECT_EQ(detail::add_shape(r.bytes, r.vector, 10), r.expected) << r.bytes << ' ' << r.vector;
  }
}

TEST(geometry, norm_holds_a_row_in_as_few_threads_as_it_takes) {
  struct row {
    std::size_t hidden;
    launch_shape expected;
  };

  for (const row& r : {row{1, {1, 32, 0}},
                       row{256, {1, 32, 0}},
                       row{257, {1, 64, 0}},
                       row{2048, {1, 256, 0}},
                       row{4096, {1, 512, 0}},
                       row{4097, {1, 288, 1}},
                       row{5120, {1, 320, 1}},
                       row{8192, {1, 512, 1}},
                       row{16384, {1, 1024, 1}},
                       row{16385, {1, 1024, 2}},
                       row{1U << 20U, {1, 1024, 2}}}) {
    EXPECT_EQ(detail::norm_shape(r.hidden), r.expected) << r.hidden;
  }
}

TEST(geometry, exchanges_have_a_block_for_512_vectors_up_to_the_limit) {
  EXPECT_EQ(detail::exchange_shape(1), (launch_shape{1, 512, 0}));
  EXPECT_EQ(detail::exchange_shape(8192), (launch_shape{1, 512, 0}));
  EXPECT_EQ(detail::exchange_shape(8193), (launch_shape{2, 512, 0}));
  EXPECT_EQ(detail::exchange_shape(std::size_t{1} << 30U),
            (launch_shape{max_exchange_blocks, 512, 0}));
  EXPECT_EQ(detail::low_latency_shape(2048), (launch_shape{1, 256, 0}));
  EXPECT_EQ(detail::low_latency_shape(2049), (launch_shape{2, 256, 0}));
}

TEST(geometry, staged_rows_are_padded_to_whole_chunks) {
  EXPECT_EQ(detail::staged_row_bytes(8, 2), 16U);
  EXPECT_EQ(detail::staged_row_bytes(9, 2), 32U);
  EXPECT_EQ(detail::staged_row_bytes(1, 4), 32U);
}

TEST(geometry, protocol_hangs_on_size_and_world_alone) {
  const segment_limits pair{.staging_bytes = 1U << 20U, .low_latency_bytes = 8192, .world = 2};
  const segment_limits four{.staging_bytes = 1U << 20U, .low_latency_bytes = 8192, .world = 4};
  constexpr std::size_t two_shot_from = 262144;
  using enum exchange_protocol;
  EXPECT_EQ(choose_protocol(2, pair, two_shot_from), low_latency);
  EXPECT_EQ(choose_protocol(8192, pair, two_shot_from), low_latency);
  EXPECT_EQ(choose_protocol(8193, pair, two_shot_from), one_shot);
  EXPECT_EQ(choose_protocol(1U << 20U, pair, two_shot_from), one_shot);
  EXPECT_EQ(choose_protocol((1U << 20U) + 1, pair, two_shot_from), std::nullopt);
  EXPECT_EQ(choose_protocol(262143, four, two_shot_from), one_shot);
  EXPECT_EQ(choose_protocol(262144, four, two_shot_from), two_shot);
}

TEST(peer_segment, areas_do_not_overlap) {
  const segment_limits limits{.staging_bytes = 4096, .low_latency_bytes = 64, .world = 3};
  EXPECT_EQ(staging_offset(limits, 2), sizeof(segment_header));
  EXPECT_EQ(staging_offset(limits, 1), sizeof(segment_header) + 4096);
  constexpr std::size_t area = 64 / line_data_bytes * line_bytes;
  EXPECT_EQ(low_latency_offset(limits, 2, 0), sizeof(segment_header) + 8192);
  EXPECT_EQ(low_latency_offset(limits, 2, 2), sizeof(segment_header) + 8192 + 2 * area);
  EXPECT_EQ(low_latency_offset(limits, 3, 0), sizeof(segment_header) + 8192 + 3 * area);
  EXPECT_EQ(segment_bytes(limits), sizeof(segment_header) + 8192 + 6 * area);
}

TEST(peer_segment, line_flags_are_never_zero_and_refresh_both_slots_each_cycle) {
  constexpr std::uint64_t cycle = 0xffffffffU;
  EXPECT_EQ(low_latency_flag(1), 2U);
  EXPECT_EQ(low_latency_flag(cycle - 1), 0xffffffffU);
  EXPECT_EQ(low_latency_flag(cycle), 1U);
  EXPECT_EQ(low_latency_flag(cycle + 1), 2U);
  EXPECT_FALSE(refreshes_lines(cycle - 1));
  EXPECT_TRUE(refreshes_lines(cycle));
  EXPECT_TRUE(refreshes_lines(cycle + 1));
  EXPECT_FALSE(refreshes_lines(cycle + 2));
}

TEST(geometry, lines_of_counts_every_begun_line) {
  EXPECT_EQ(lines_of(0), 0U);
  EXPECT_EQ(lines_of(1), 1U);
  EXPECT_EQ(lines_of(line_data_bytes), 1U);
  EXPECT_EQ(lines_of(line_data_bytes + 1), 2U);
}

}  // namespace
}  // namespace spark_comm::kernels
