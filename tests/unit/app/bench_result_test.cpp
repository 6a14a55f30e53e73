// SPDX-License-Identifier: AGPL-3.0-only
// From measurements to rows: the slowest rank counts, and a wrong element takes the figures away.
#include <gtest/gtest.h>

#include <bench_options.hpp>
#include <bench_result.hpp>
#include <exit_code.hpp>
#include <operation.hpp>
#include <optional>
#include <rank_report.hpp>
#include <utility>
#include <vector>

namespace spark_comm::app {
namespace {

measured_report measured(bool in_place, std::vector<double> microseconds, std::uint64_t wrong = 0) {
  return {.row = 0,
          .in_place = in_place,
          .size_bytes = 1'000'000,
          .count = 250'000,
          .wrong = wrong,
          .microseconds = std::move(microseconds)};
}

TEST(bench_result, the_slowest_rank_of_each_iteration_counts) {
  const placement_result result = combine(
      operation::all_reduce, {measured(false, {10, 90, 30}), measured(false, {20, 40, 80})});
  EXPECT_EQ(result.microseconds.median, 80);
  EXPECT_EQ(result.microseconds.p99, 90);
  EXPECT_DOUBLE_EQ(result.speed.algorithm, 12.5);
  EXPECT_DOUBLE_EQ(result.speed.bus.value_or(0), 12.5);
}

TEST(bench_result, a_wrong_element_on_any_rank_takes_the_figures_away) {
  const placement_result result =
      combine(operation::all_reduce, {measured(false, {10}), measured(false, {}, 3)});
  EXPECT_FALSE(result.is_right());
  EXPECT_EQ(result.wrong, 3U);
  EXPECT_EQ(result.microseconds.median, 0);
  EXPECT_EQ(result.speed.algorithm, 0);
  EXPECT_FALSE(result.speed.bus);
}

TEST(bench_result, a_row_waits_for_all_ranks_in_both_placements) {
  bench_collector results{bench_options{}};
  EXPECT_FALSE(results.add(measured(false, {10})));
  EXPECT_FALSE(results.add(measured(true, {20})));
  EXPECT_FALSE(results.add(measured(false, {10})));
  const std::optional<row_result> row = results.add(measured(true, {20}));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->out_of_place.microseconds.median, 10);
  ASSERT_TRUE(row->in_place);
  EXPECT_EQ(row->in_place->microseconds.median, 20);
  EXPECT_TRUE(results.is_right());
  EXPECT_DOUBLE_EQ(results.best_bus().value_or(0), 100);
}

TEST(bench_result, operations_without_a_form_in_place_have_no_such_result) {
  bench_options options;
  options.what = operation::all_to_all;
  options.job.ranks = 1;
  bench_collector results{options};
  const std::optional<row_result> row = results.add(measured(false, {10}));
  ASSERT_TRUE(row);
  EXPECT_FALSE(row->in_place);
}

TEST(bench_result, a_wrong_row_makes_the_whole_wrong_and_is_no_best) {
  bench_options options;
  options.job.ranks = 2;
  options.what = operation::send_recv;
  bench_collector results{options};
  static_cast<void>(results.add(measured(false, {1}, 1)));
  static_cast<void>(results.add(measured(false, {1})));
  EXPECT_FALSE(results.is_right());
  EXPECT_FALSE(results.best_bus());
}

TEST(bench_result, a_world_of_one_has_no_best_bus) {
  bench_options options;
  options.job.ranks = 1;
  options.what = operation::send_recv;
  bench_collector results{options};
  static_cast<void>(results.add(measured(false, {1})));
  EXPECT_TRUE(results.is_right());
  EXPECT_FALSE(results.best_bus());
}

TEST(bench_result, ranks_that_disagree_on_a_row_are_an_error) {
  bench_collector results{bench_options{}};
  static_cast<void>(results.add(measured(false, {10})));
  measured_report other = measured(false, {10});
  other.size_bytes = 4;
  EXPECT_THROW(static_cast<void>(results.add(other)), failure);
}

}  // namespace
}  // namespace spark_comm::app
