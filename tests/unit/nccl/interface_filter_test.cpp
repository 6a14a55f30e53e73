// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/interface_filter.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spark_comm::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> present = {"lo", "eth0", "eth1", "eth10", "docker0"};

std::string refusal_of(const std::string& list) {
  try {
    require_interfaces("NCCL_SOCKET_IFNAME", list, present);
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::invalid_argument);
    return failure.message();
  }
  return {};
}

TEST(interface_filter, selects_as_nccl_reads_lists) {
  EXPECT_EQ(select_interfaces("", present), present);
  EXPECT_THAT(select_interfaces("eth", present), ElementsAre("eth0", "eth1", "eth10"));
  EXPECT_THAT(select_interfaces("eth1", present), ElementsAre("eth1", "eth10"));
  EXPECT_THAT(select_interfaces("=eth1", present), ElementsAre("eth1"));
  EXPECT_THAT(select_interfaces("=eth0,eth1", present), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(select_interfaces("^docker,lo", present), ElementsAre("eth0", "eth1", "eth10"));
  EXPECT_THAT(select_interfaces("^=eth1", present), ElementsAre("lo", "eth0", "eth10", "docker0"));
  EXPECT_THAT(select_interfaces("=eth1:2", present), ElementsAre("eth1"));
  EXPECT_THAT(select_interfaces("eth0,,", present), ElementsAre("eth0"));
  EXPECT_THAT(select_interfaces("eth9", present), IsEmpty());
  EXPECT_THAT(select_interfaces("^lo,eth,docker", present), IsEmpty());
}

TEST(interface_filter, refuses_a_list_that_leaves_nothing_and_names_what_is_there) {
  for (const char* const list : {"ib0", "=eth", "^lo,eth,docker", "=eth2,eth3"}) {
    EXPECT_THAT(refusal_of(list),
                AllOf(HasSubstr(std::string{"NCCL_SOCKET_IFNAME is '"} + list),
                      HasSubstr("present are: lo, eth0, eth1, eth10, docker0")));
  }
  for (const char* const list : {"eth0", "=eth0,eth7", "^docker", ""}) {
    EXPECT_EQ(refusal_of(list), "") << list;
  }
}

}  // namespace
}  // namespace spark_comm::nccl
