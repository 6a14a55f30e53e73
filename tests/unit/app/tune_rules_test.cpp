// SPDX-License-Identifier: AGPL-3.0-only
#include "tune_rules.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace spark_comm::app {
namespace {

using enum path_kind;

TEST(tune_rules, a_rule_ends_where_another_path_becomes_the_fastest) {
  const path_table table = tuned_table({{nccl, 1024, 10.0},
                                        {nccl, 2048, 10.0},
                                        {nccl, 4096, 10.0},
                                        {nccl, 8192, 10.0},
                                        {low_latency, 1024, 3.0},
                                        {low_latency, 2048, 4.0},
                                        {one_shot, 1024, 5.0},
                                        {one_shot, 2048, 5.0},
                                        {one_shot, 4096, 6.0},
                                        {one_shot, 8192, 9.9}},
                                       2,
                                       runtime_kind::host);
  EXPECT_EQ(table.text(),
            "spark-comm-paths 1\n"
            "all_reduce 2 near 2048 low_latency\n"
            "all_reduce 2 near 4096 one_shot\n"
            "all_reduce 2 near 8192 nccl\n"
            "all_reduce 2 near * nccl\n");
}

TEST(tune_rules, what_was_not_measured_follows_the_defaults) {
  const path_table defaults = path_table::defaults(runtime_kind::nvidia);
  const path_table table = tuned_table({{nccl, 64, 1.0}}, 4, runtime_kind::nvidia);
  ASSERT_EQ(table.rules().size(), 2 + defaults.rules().size());
  EXPECT_EQ(table.rules()[2], defaults.rules()[0]);
}

}  // namespace
}  // namespace spark_comm::app
