// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/operation.hpp>
#include <spark_comm/nccl/abi.hpp>

#include <gtest/gtest.h>

namespace spark_comm {
namespace {

TEST(launch_result, in_progress_is_launched_and_an_error_is_not) {
  namespace results = nccl::abi::results;
  EXPECT_TRUE(launch_result{}.is_launched());
  EXPECT_FALSE(launch_result{}.is_in_progress());
  EXPECT_TRUE(launch_result{.code = results::in_progress}.is_launched());
  EXPECT_TRUE(launch_result{.code = results::in_progress}.is_in_progress());
  for (int code = 1; code < 100; ++code) {
    EXPECT_EQ(launch_result{.code = code}.is_launched(), code == results::in_progress) << code;
  }
}

}  // namespace
}  // namespace spark_comm
