// SPDX-License-Identifier: AGPL-3.0-only
// Bandwidths against known right values, and what is said about a link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bandwidth.hpp>
#include <cstdint>
#include <operation.hpp>

namespace spark_comm::app {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double ten_milliseconds = 10'000;
constexpr std::uint64_t gibibyte = 1073741824;

struct known_value {
  operation what;
  int world_size;
  std::uint64_t size_bytes;
  double algorithm;
  double bus;
};

TEST(bandwidth, agrees_with_known_right_values) {
  constexpr std::array<known_value, 7> table = {{
      {operation::all_reduce, 2, gibibyte, 107.374, 107.374},
      {operation::all_reduce, 4, gibibyte, 107.374, 161.061},
      {operation::all_reduce, 8, gibibyte, 107.374, 187.905},
      {operation::all_gather, 4, 4ULL * 268435456, 107.374, 80.531},
      {operation::reduce_scatter, 4, 4ULL * 268435456, 107.374, 80.531},
      {operation::broadcast, 4, gibibyte, 107.374, 107.374},
      {operation::all_to_all, 4, gibibyte, 107.374, 80.531},
  }};
  for (const known_value& row : table) {
    SCOPED_TRACE(traits_of(row.what).name);
    const bandwidth measured =
        bandwidth_of(row.what, row.world_size, row.size_bytes, ten_milliseconds);
    EXPECT_NEAR(measured.algorithm, row.algorithm, 0.01);
    ASSERT_TRUE(measured.bus);
    EXPECT_NEAR(*measured.bus, row.bus, 0.01);
  }
}

TEST(bandwidth, a_world_of_one_has_no_bus) {
  for (const operation what : all_operations) {
    EXPECT_FALSE(bus_factor(what, 1)) << traits_of(what).name;
    EXPECT_FALSE(bandwidth_of(what, 1, gibibyte, ten_milliseconds).bus);
  }
}

TEST(bandwidth, no_time_gives_no_infinity) {
  EXPECT_EQ(bandwidth_of(operation::all_reduce, 2, gibibyte, 0).algorithm, 0);
}

TEST(bandwidth, a_half_used_link_gets_a_hint) {
  const link_verdict verdict = judge_link(12.25, 200);
  EXPECT_NEAR(verdict.gigabits, 98.0, 0.01);
  EXPECT_NEAR(verdict.share, 0.49, 0.001);
  EXPECT_THAT(verdict.text, HasSubstr("98.0 Gb/s = 49 % of the stated link of 200 Gb/s"));
  EXPECT_THAT(verdict.text, HasSubstr("two halves"));
}

TEST(bandwidth, more_than_the_link_carries_is_suspect) {
  EXPECT_THAT(judge_link(26, 200).text, HasSubstr("suspect"));
}

TEST(bandwidth, a_well_used_link_gets_no_remark) {
  const link_verdict verdict = judge_link(23, 200);
  EXPECT_THAT(verdict.text, Not(HasSubstr("suspect")));
  EXPECT_THAT(verdict.text, Not(HasSubstr("half")));
}

}  // namespace
}  // namespace spark_comm::app
