// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace spark_comm {
namespace {

TEST(operation, every_kind_and_path_has_a_name_of_its_own) {
  std::set<std::string> names;
  for (const operation_kind kind : all_operation_kinds) {
    EXPECT_NE(name_of(kind), "unknown");
    EXPECT_TRUE(names.emplace(name_of(kind)).second);
  }
  EXPECT_EQ(names.size(), 11U);
  for (const path_kind path : all_path_kinds) {
    EXPECT_NE(name_of(path), "unknown");
    EXPECT_TRUE(names.emplace(name_of(path)).second);
  }
  EXPECT_EQ(name_of(static_cast<operation_kind>(0)), "unknown");
  EXPECT_EQ(name_of(static_cast<path_kind>(200)), "unknown");
}

TEST(operation, kinds_say_what_must_agree) {
  int reducing = 0;
  int rooted = 0;
  int pairwise = 0;
  for (const operation_kind kind : all_operation_kinds) {
    reducing += is_reducing(kind) ? 1 : 0;
    rooted += is_rooted(kind) ? 1 : 0;
    pairwise += is_point_to_point(kind) ? 1 : 0;
  }
  EXPECT_EQ(reducing, 4);
  EXPECT_EQ(rooted, 2);
  EXPECT_EQ(pairwise, 2);
  EXPECT_FALSE(is_reducing(static_cast<operation_kind>(0)));
}

TEST(operation, flags_are_set_one_by_one) {
  operation_record record;
  EXPECT_FALSE(record.has(operation_flag::in_group));
  record.set(operation_flag::captured);
  EXPECT_TRUE(record.has(operation_flag::captured));
  EXPECT_FALSE(record.has(operation_flag::in_group));
  EXPECT_FALSE(record.has(operation_flag::uneven));
}

TEST(operation, describes_itself_in_one_line) {
  struct row {
    operation_record record;
    const char* text;
  };

  operation_record grouped{.sequence = 5, .count_elements = 8, .root_or_peer = 1};
  grouped.kind = operation_kind::send;
  grouped.dtype = data_type::uint8;
  grouped.set(operation_flag::in_group);
  grouped.set(operation_flag::captured);
  operation_record received = grouped;
  received.kind = operation_kind::recv;
  received.flags = 0;
  const row rows[] = {
      {{.sequence = 7, .count_elements = 4096, .dtype = data_type::bfloat16},
       "all_reduce #7 (4096 x bf16, sum, nccl)"},
      {{.sequence = 8,
        .count_elements = 3,
        .root_or_peer = 2,
        .kind = operation_kind::reduce,
        .dtype = data_type::float32,
        .op = reduce_op::max},
       "reduce #8 (3 x fp32, max, root 2, nccl)"},
      {{.sequence = 9,
        .count_elements = 0,
        .root_or_peer = 0,
        .kind = operation_kind::broadcast,
        .path = path_kind::local},
       "broadcast #9 (0 x bytes, root 0, local)"},
      {grouped, "send #5 (8 x uint8, to rank 1, nccl, in group, captured)"},
      {received, "recv #5 (8 x uint8, from rank 1, nccl)"},
      {{.sequence = 2, .kind = operation_kind::barrier}, "barrier #2"},
      {{.sequence = 3, .count_elements = 4, .kind = operation_kind::group},
       "group #3 of 4 collectives"},
  };
  for (const row& each : rows) {
    EXPECT_EQ(describe(each.record), each.text);
  }
}

}  // namespace
}  // namespace spark_comm
