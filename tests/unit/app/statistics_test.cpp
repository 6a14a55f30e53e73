// SPDX-License-Identifier: AGPL-3.0-only
// Medians, percentiles, and the slowest rank.
#include <gtest/gtest.h>

#include <numeric>
#include <statistics.hpp>
#include <vector>

namespace spark_comm::app {
namespace {

TEST(statistics, the_median_is_the_middle) {
  EXPECT_EQ(summarize({3, 1, 2}).median, 2);
  EXPECT_EQ(summarize({4, 1, 3, 2}).median, 2.5);
  EXPECT_EQ(summarize({7}).median, 7);
}

TEST(statistics, no_samples_give_zeros) {
  EXPECT_EQ(summarize({}).median, 0);
  EXPECT_EQ(summarize({}).p99, 0);
}

TEST(statistics, p99_is_not_exceeded_by_99_percent_of_the_samples) {
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  EXPECT_EQ(summarize(hundred).p99, 99);
  std::vector<double> thousand(1000);
  std::iota(thousand.begin(), thousand.end(), 1);
  EXPECT_EQ(summarize(thousand).p99, 990);
}

TEST(statistics, p99_of_few_samples_is_the_largest) {
  EXPECT_EQ(summarize({1, 2, 3}).p99, 3);
  EXPECT_EQ(summarize({5}).p99, 5);
}

TEST(statistics, one_slow_sample_does_not_move_the_median) {
  EXPECT_EQ(summarize({10, 10, 10, 10, 1000}).median, 10);
}

TEST(statistics, the_slowest_rank_counts_in_each_iteration) {
  const std::vector<std::vector<double>> ranks = {{1, 9, 3}, {2, 4, 8}};
  EXPECT_EQ(slowest_of(ranks), (std::vector<double>{2, 9, 8}));
}

TEST(statistics, ranks_with_fewer_samples_cut_the_others) {
  const std::vector<std::vector<double>> ranks = {{1, 2, 3}, {4, 5}};
  EXPECT_EQ(slowest_of(ranks), (std::vector<double>{4, 5}));
  EXPECT_TRUE(slowest_of({}).empty());
}

}  // namespace
}  // namespace spark_comm::app
