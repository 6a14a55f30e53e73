// SPDX-License-Identifier: AGPL-3.0-only
// Which sizes are measured, what is refused, how much memory may be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bench_options.hpp>
#include <chrono>
#include <cstdint>
#include <exit_code.hpp>
#include <functional>
#include <memory_estimate.hpp>
#include <rank_session.hpp>
#include <string>
#include <vector>

namespace spark_comm::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> sizes(const bench_options& options) {
  std::vector<std::uint64_t> bytes;
  for (const bench_row& row : rows_of(options, 1024)) {
    bytes.push_back(row.size_bytes);
  }
  return bytes;
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const failure& caught) {
    EXPECT_EQ(caught.code(), exit_code::usage);
    return caught.what();
  }
  return "accepted";
}

TEST(bench_options, sizes_grow_by_the_factor_to_the_largest) {
  bench_options options;
  options.min_bytes = 256;
  EXPECT_THAT(sizes(options), ElementsAre(256, 512, 1024));
  options.max_bytes = 2000;
  EXPECT_THAT(sizes(options), ElementsAre(256, 512, 1024));
  options.factor = 10;
  EXPECT_THAT(sizes(options), ElementsAre(256));
}

TEST(bench_options, sizes_are_those_of_whole_blocks_and_none_is_measured_twice) {
  bench_options options;
  options.what = operation::all_gather;
  options.job.ranks = 3;
  options.max_bytes = 64;
  EXPECT_THAT(sizes(options), ElementsAre(12, 24, 60));
}

TEST(bench_options, the_largest_size_may_be_the_largest_number) {
  bench_options options;
  options.min_bytes = 1ULL << 62U;
  options.max_bytes = UINT64_MAX;
  EXPECT_EQ(rows_of(options, 0).size(), 2U);
}

TEST(bench_options, no_size_at_all_is_refused) {
  bench_options options;
  options.min_bytes = 2;
  options.max_bytes = 2;
  EXPECT_THAT(refusal([&] { static_cast<void>(rows_of(options, 0)); }),
              HasSubstr("no size to measure"));
}

TEST(bench_options, each_value_out_of_range_is_named_with_what_is_accepted) {
  struct wrong_value {
    std::function<void(bench_options&)> set;
    const char* text;
  };

  const std::vector<wrong_value> table = {
      {[](bench_options& o) { o.job.ranks = 0; }, "--ranks 0: accepted are 1 to 64"},
      {[](bench_options& o) { o.job.ranks = 65; }, "--ranks 65"},
      {[](bench_options& o) { o.job.deadline = duration{0}; }, "--deadline"},
      {[](bench_options& o) { o.job.limit = duration{0}; }, "--limit"},
      {[](bench_options& o) { o.min_bytes = 0; }, "--min 0"},
      {[](bench_options& o) { o.max_bytes = 4; }, "--max 4 B is smaller than --min 8 B"},
      {[](bench_options& o) { o.factor = 1; }, "--factor 1: accepted are 2 or more"},
      {[](bench_options& o) { o.iterations = 0; }, "--iterations 0"},
      {[](bench_options& o) { o.warmup = -1; }, "--warmup -1"},
      {[](bench_options& o) { o.root = 2; }, "--root 2: accepted are 0 to 1 with 2 ranks"},
      {[](bench_options& o) { o.root = -1; }, "--root -1"},
      {[](bench_options& o) { o.link_gigabits = 0; }, "--link"},
      {[](bench_options& o) { o.dtype = data_type::bytes; }, "all_reduce cannot reduce bytes"},
  };
  EXPECT_EQ(refusal([] { validate(bench_options{}); }), "accepted");
  for (const wrong_value& row : table) {
    bench_options options;
    row.set(options);
    EXPECT_THAT(refusal([&] { validate(options); }), HasSubstr(row.text));
  }
}

TEST(bench_options, bytes_may_be_moved) {
  bench_options options;
  options.what = operation::broadcast;
  options.dtype = data_type::bytes;
  EXPECT_EQ(refusal([&] { validate(options); }), "accepted");
}

TEST(memory_estimate, counts_input_and_output) {
  EXPECT_EQ(buffer_bytes(operation::all_reduce, 4, 100, data_type::float32), 800U);
  EXPECT_EQ(buffer_bytes(operation::all_gather, 4, 100, data_type::float32), 2000U);
  EXPECT_EQ(buffer_bytes(operation::all_to_all, 4, 100, data_type::bfloat16), 1600U);
}

TEST(memory_estimate, more_than_half_of_what_is_free_is_refused_with_both_numbers) {
  constexpr std::uint64_t gibibyte = 1ULL << 30U;
  require_memory({.per_rank = gibibyte, .ranks_sharing = 2}, 4 * gibibyte, "device 0");
  const std::string text = refusal([] {
    require_memory({.per_rank = 2 * gibibyte, .ranks_sharing = 2}, 6 * gibibyte, "device 0");
  });
  EXPECT_THAT(text, HasSubstr("needs 4 GiB of memory on device 0 (2 ranks x 2 GiB"));
  EXPECT_THAT(text, HasSubstr("may use 3 GiB, half of the 6 GiB free"));
}

TEST(rank_session, ranks_are_spread_over_devices_in_turn) {
  EXPECT_EQ(ranks_on_device_of(0, 4, 4), 1);
  EXPECT_EQ(ranks_on_device_of(0, 2, 1), 2);
  EXPECT_EQ(ranks_on_device_of(0, 5, 2), 3);
  EXPECT_EQ(ranks_on_device_of(1, 5, 2), 2);
  EXPECT_EQ(ranks_on_device_of(3, 5, 2), 2);
}

TEST(rank_session, more_ranks_than_devices_are_refused_with_both_numbers) {
  require_devices(2, 2, false);
  require_devices(4, 1, true);
  EXPECT_THAT(refusal([] { require_devices(4, 1, false); }),
              HasSubstr("--ranks 4 needs 4 devices, but 1 is visible"));
  EXPECT_THROW(require_devices(1, 0, false), failure);
}

}  // namespace
}  // namespace spark_comm::app
