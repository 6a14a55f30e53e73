// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/gid.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace spark_comm::nccl {
namespace {

using ::testing::HasSubstr;

// The table of a RoCE port, as the kernel fills it.
const std::vector<gid_entry> table = {
    {0, "fe80:0000:0000:0000:4ebb:47ff:fe00:0001", gid_type::roce_v1},
    {1, "fe80:0000:0000:0000:4ebb:47ff:fe00:0001", gid_type::roce_v2},
    {2, "0000:0000:0000:0000:0000:ffff:c000:0209", gid_type::roce_v1},
    {3, "0000:0000:0000:0000:0000:ffff:c000:0209", gid_type::roce_v2},
    {4, "0000:0000:0000:0000:0000:0000:0000:0000", gid_type::roce_v2},
};

TEST(gid, takes_the_routable_ipv4_entry_of_roce_v2) {
  for (const std::optional<int> asked : {std::optional<int>{}, {-1}, {3}}) {
    const gid_choice chosen = choose_gid(table, asked);
    EXPECT_EQ(chosen.index, 3);
    EXPECT_EQ(chosen.warning, "");
  }
}

TEST(gid, doubts_what_was_asked_for) {
  const gid_choice link_local = choose_gid(table, 1);
  EXPECT_EQ(link_local.index, 1);
  EXPECT_THAT(link_local.warning, HasSubstr("link-local"));
  EXPECT_THAT(choose_gid(table, 2).warning, HasSubstr("RoCE v1"));
}

TEST(gid, refuses_an_entry_that_is_not_there) {
  for (const int asked : {4, 9}) {
    try {
      (void)choose_gid(table, asked);
      ADD_FAILURE() << asked;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument);
      EXPECT_THAT(failure.message(),
                  HasSubstr("3: 0000:0000:0000:0000:0000:ffff:c000:0209 RoCE v2"));
    }
  }
}

TEST(gid, chooses_no_link_local_address_in_silence) {
  const std::vector<gid_entry> poor = {
      table[0], table[1], {2, "0000:0000:0000:0000:0000:ffff:a9fe:0101", gid_type::roce_v2}};
  try {
    (void)choose_gid(poor, {});
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::invalid_usage);
  }
  EXPECT_TRUE(is_ipv4(poor[2]));
  EXPECT_TRUE(is_link_local(poor[2]));
  EXPECT_FALSE(is_link_local(table[3]));
  EXPECT_TRUE(is_empty(table[4]));
}

}  // namespace
}  // namespace spark_comm::nccl
