// SPDX-License-Identifier: AGPL-3.0-only
// What each operation moves where: shapes, counts for a size, and which result is expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <operation.hpp>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm::app {

static bool operator==(const result_segment& a, const result_segment& b) {
  return a.source == b.source && a.first == b.first && a.count == b.count;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

result_segment reduced(std::size_t first, std::size_t count) {
  return {.source = std::nullopt, .first = first, .count = count};
}

result_segment copied(int source, std::size_t first, std::size_t count) {
  return {.source = source, .first = first, .count = count};
}

TEST(operation, every_name_can_be_parsed_and_is_listed) {
  for (const operation what : all_operations) {
    EXPECT_EQ(parse_operation(traits_of(what).name), what);
    EXPECT_NE(operation_names().find(traits_of(what).name), std::string::npos);
  }
  EXPECT_FALSE(parse_operation("all-reduce"));
  EXPECT_FALSE(parse_operation(""));
}

TEST(operation, shapes_count_blocks_where_the_operation_has_them) {
  const auto shape = [](operation what) { return shape_of(what, 3, 10); };
  EXPECT_EQ(shape(operation::all_reduce).larger(), 10U);
  EXPECT_EQ(shape(operation::reduce).larger(), 10U);
  EXPECT_EQ(shape(operation::broadcast).larger(), 10U);
  EXPECT_EQ(shape(operation::send_recv).larger(), 10U);
  EXPECT_EQ(shape(operation::all_gather).input, 10U);
  EXPECT_EQ(shape(operation::all_gather).output, 30U);
  EXPECT_EQ(shape(operation::reduce_scatter).input, 30U);
  EXPECT_EQ(shape(operation::reduce_scatter).output, 10U);
  EXPECT_EQ(shape(operation::all_to_all).input, 30U);
  EXPECT_EQ(shape(operation::all_to_all).output, 30U);
}

TEST(operation, a_size_is_that_of_the_larger_buffer) {
  EXPECT_EQ(count_for(operation::all_reduce, 4, 1024, 4), 256U);
  EXPECT_EQ(count_for(operation::all_gather, 4, 1024, 4), 64U);
  EXPECT_EQ(count_for(operation::reduce_scatter, 4, 1024, 2), 128U);
  EXPECT_EQ(count_for(operation::all_to_all, 3, 1024, 4), 85U);
  EXPECT_EQ(count_for(operation::all_gather, 4, 8, 4), 0U);
}

TEST(operation, in_place_uses_the_own_block) {
  EXPECT_EQ(in_place_of(operation::all_gather, 2, 10).input, 20U);
  EXPECT_EQ(in_place_of(operation::all_gather, 2, 10).output, 0U);
  EXPECT_EQ(in_place_of(operation::reduce_scatter, 2, 10).input, 0U);
  EXPECT_EQ(in_place_of(operation::reduce_scatter, 2, 10).output, 20U);
  EXPECT_EQ(in_place_of(operation::all_reduce, 2, 10).output, 0U);
}

TEST(operation, expected_results_name_source_and_place) {
  const placement middle{.rank = 1, .world_size = 3, .root = 2};
  const auto expected = [&](operation what) { return expected_result(what, middle, 10); };
  EXPECT_THAT(expected(operation::all_reduce), ElementsAre(reduced(0, 10)));
  EXPECT_THAT(expected(operation::reduce), IsEmpty());
  EXPECT_THAT(expected(operation::broadcast), ElementsAre(copied(2, 0, 10)));
  EXPECT_THAT(expected(operation::reduce_scatter), ElementsAre(reduced(10, 10)));
  EXPECT_THAT(expected(operation::send_recv), ElementsAre(copied(0, 0, 10)));
  EXPECT_THAT(expected(operation::all_gather),
              ElementsAre(copied(0, 0, 10), copied(1, 0, 10), copied(2, 0, 10)));
  EXPECT_THAT(expected(operation::all_to_all),
              ElementsAre(copied(0, 10, 10), copied(1, 10, 10), copied(2, 10, 10)));
}

TEST(operation, the_root_gets_the_reduction_and_the_ring_closes) {
  const placement first{.rank = 0, .world_size = 3, .root = 0};
  EXPECT_THAT(expected_result(operation::reduce, first, 5), ElementsAre(reduced(0, 5)));
  EXPECT_THAT(expected_result(operation::send_recv, first, 5), ElementsAre(copied(2, 0, 5)));
}

}  // namespace
}  // namespace spark_comm::app
