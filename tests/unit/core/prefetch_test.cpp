// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/prefetch.hpp>

#include <gtest/gtest.h>

#include <array>

namespace spark_comm {
namespace {

TEST(prefetch, changes_nothing_and_takes_any_address) {
  std::array<int, 100> values{};
  values.fill(7);
  prefetch_for_writing(&values);
  prefetch_for_writing(values.data() + values.size());
  prefetch_for_writing<int>(nullptr);
  for (const int each : values) {
    EXPECT_EQ(each, 7);
  }
}

}  // namespace
}  // namespace spark_comm
