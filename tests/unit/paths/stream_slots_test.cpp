// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/paths/detail/stream_slots.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace spark_comm::detail {
namespace {

TEST(stream_slots, are_given_in_the_order_of_first_use) {
  stream_slots slots{2};
  EXPECT_EQ(slots.of(32), 0U);
  EXPECT_EQ(slots.of(16), 1U);
  EXPECT_EQ(slots.of(32), 0U);
}

TEST(stream_slots, end_with_the_limit_and_stay_with_their_streams) {
  stream_slots slots{1};
  EXPECT_EQ(slots.of(0), 0U) << "the default stream is one like the others";
  EXPECT_EQ(slots.of(16), std::nullopt);
  EXPECT_EQ(slots.of(0), 0U);
}

}  // namespace
}  // namespace spark_comm::detail
