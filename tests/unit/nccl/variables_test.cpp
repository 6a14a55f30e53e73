// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/nccl/variables.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace spark_comm::nccl {
namespace {

TEST(variables, are_sorted_and_of_nccl) {
  const auto known = known_variables();
  EXPECT_TRUE(std::ranges::is_sorted(known));
  EXPECT_TRUE(std::ranges::all_of(known, [](auto name) { return name.starts_with("NCCL_"); }));
  for (const char* const name : {"NCCL_IB_GID_INDEX", "NCCL_SOCKET_IFNAME", "NCCL_CHECK_MODE"}) {
    EXPECT_TRUE(std::ranges::binary_search(known, std::string_view{name})) << name;
  }
}

}  // namespace
}  // namespace spark_comm::nccl
