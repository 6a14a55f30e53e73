// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace spark_comm {
namespace {

using enum path_kind;

constexpr std::uint64_t kib = 1024;

path_capabilities all_open(int world_size, world_reach reach = world_reach::near) {
  return {.world_size = world_size,
          .reach = reach,
          .exchange_bytes = world_size == 2 ? 1024 * kib : 0,
          .staging_bytes = 1024 * kib,
          .low_latency_bytes = 64 * kib};
}

path_query sum_of(std::uint64_t bytes, data_type dtype = data_type::bfloat16) {
  return {.dtype = dtype, .bytes = bytes, .staging_bytes = bytes};
}

path_table table(const std::string& rules) {
  return path_table::parse("spark-comm-paths 1\n" + rules, "test");
}

TEST(path_table, takes_the_first_rule_that_applies) {
  const path_table rules = table(
      "all_reduce 2 near 64 low_latency\n"
      "all_reduce * *    128 one_shot\n"
      "all_reduce * far  *   exchange\n"
      "all_reduce 3 *    256 two_shot\n");

  struct {
    std::uint64_t bytes;
    int world_size;
    world_reach reach;
    path_kind expected;
  } const cases[] = {
      {64, 2, world_reach::near, low_latency},
      {65, 2, world_reach::near, one_shot},
      {64, 2, world_reach::far, one_shot},
      {64, 3, world_reach::near, one_shot},
      {128, 2, world_reach::near, one_shot},
      {129, 2, world_reach::near, nccl},
      {129, 2, world_reach::far, exchange},
      {129, 3, world_reach::near, two_shot},
      {129, 3, world_reach::far, two_shot},
      {257, 3, world_reach::near, nccl},
  };

  for (const auto& each : cases) {
    EXPECT_EQ(choose_path(rules, sum_of(each.bytes), all_open(each.world_size, each.reach)),
              each.expected)
        << each.bytes << " bytes, " << each.world_size << " ranks";
  }
}

TEST(path_table, goes_on_to_the_next_rule_where_a_path_is_not_open) {
  const path_table rules = table(
      "all_reduce * * * low_latency\n"
      "all_reduce * * * one_shot\n"
      "all_reduce * * * exchange\n");
  path_capabilities there = all_open(2);
  EXPECT_EQ(choose_path(rules, sum_of(64 * kib), there), low_latency);
  EXPECT_EQ(choose_path(rules, sum_of(64 * kib + 2), there), one_shot);
  EXPECT_EQ(choose_path(rules, sum_of(1024 * kib), there), one_shot);
  EXPECT_EQ(choose_path(rules, sum_of(1024 * kib + 2), there), nccl);
  there.staging_bytes = 0;
  there.low_latency_bytes = 0;
  EXPECT_EQ(choose_path(rules, sum_of(2), there), exchange);
  there.exchange_bytes = 0;
  EXPECT_EQ(choose_path(rules, sum_of(2), there), nccl);
}

TEST(path_table, only_sums_of_the_kernels_types_leave_nccl) {
  const path_table rules = table("all_reduce * * * one_shot\n");
  const path_capabilities there = all_open(2);
  for (const data_type dtype : {data_type::float32, data_type::float16, data_type::bfloat16}) {
    EXPECT_EQ(choose_path(rules, sum_of(64, dtype), there), one_shot);
  }
  for (const data_type dtype : {data_type::float64, data_type::int32, data_type::float8_e4m3}) {
    EXPECT_EQ(choose_path(rules, sum_of(64, dtype), there), nccl);
  }
  for (const reduce_op op : {reduce_op::prod, reduce_op::max, reduce_op::min, reduce_op::avg}) {
    path_query asked = sum_of(64);
    asked.op = op;
    EXPECT_EQ(choose_path(rules, asked, there), nccl);
  }
}

TEST(path_table, plain_and_fused_paths_do_not_stand_in_for_each_other) {
  const path_capabilities there = all_open(2);
  path_query fused = sum_of(64);
  fused.operation = operation_kind::all_reduce_rms_norm;
  for (const path_kind path : {one_shot_fused, exchange_fused}) {
    EXPECT_TRUE(is_open(path, fused, there));
    EXPECT_FALSE(is_open(path, sum_of(64), there));
  }
  for (const path_kind path : {one_shot, two_shot, low_latency, exchange}) {
    EXPECT_FALSE(is_open(path, fused, there));
    EXPECT_TRUE(is_open(path, sum_of(64), there));
  }
  path_query broadcast = sum_of(64);
  broadcast.operation = operation_kind::broadcast;
  for (const path_kind path : all_path_kinds) {
    EXPECT_EQ(is_open(path, broadcast, there), path == nccl) << name_of(path);
  }
}

TEST(path_table, exchanges_are_for_pairs) {
  path_capabilities there = all_open(3);
  there.exchange_bytes = 1024;
  EXPECT_FALSE(is_open(exchange, sum_of(64), there));
}

TEST(path_table, what_a_message_takes_in_a_segment_decides_whether_it_fits) {
  path_query asked = sum_of(1024 * kib);
  asked.staging_bytes += 16;
  EXPECT_FALSE(is_open(one_shot, asked, all_open(2)));
}

TEST(path_table, text_and_rules_are_the_same_thing) {
  const std::string text =
      "spark-comm-paths 1\n"
      "all_reduce 2 near 65536 low_latency\n"
      "all_reduce_rms_norm * far * exchange_fused\n"
      "all_reduce * * * nccl\n";
  const path_table rules = path_table::parse(text, "test");
  EXPECT_EQ(rules.text(), text);
  ASSERT_EQ(rules.rules().size(), 3U);
  EXPECT_EQ(rules.rules()[0],
            (path_rule{.operation = operation_kind::all_reduce,
                       .world_size = 2,
                       .reach = world_reach::near,
                       .max_bytes = 65536,
                       .path = low_latency}));
  const path_table spaced = path_table::parse(
      "# tuned\n\n  spark-comm-paths\t1 # version\r\n"
      "all_reduce   2  near 65536 low_latency # fast\n\n"
      "all_reduce_rms_norm * far * exchange_fused\nall_reduce * * * nccl",
      "test");
  EXPECT_EQ(spaced, rules);
  EXPECT_EQ(spaced.hash(), rules.hash());
  EXPECT_NE(table("all_reduce * * * nccl\n").hash(), rules.hash());
}

TEST(path_table, says_where_a_text_is_wrong) {
  struct {
    const char* text;
    const char* expected;
  } const cases[] = {
      {"", "test:0: the first line"},
      {"# nothing\n", "test:1: the first line"},
      {"spark-comm-paths 2\n", "test:1: 'spark-comm-paths 2' is not 'spark-comm-paths 1'"},
      {"all_reduce * * * nccl\n", "test:1: 'all_reduce * * * nccl' is not"},
      {"spark-comm-paths 1\nall_reduce * * nccl\n", "test:2: 4 words"},
      {"spark-comm-paths 1\n\nbroadcast * * * nccl\n",
       "test:3: 'broadcast' is none of: all_reduce, all_reduce_rms_norm"},
      {"spark-comm-paths 1\nall_reduce two * * nccl\n", "'two' is neither * nor a number"},
      {"spark-comm-paths 1\nall_reduce 2 close * nccl\n", "'close' is none of: *, near, far"},
      {"spark-comm-paths 1\nall_reduce 2 * 64K nccl\n", "'64K' is neither * nor a number"},
      {"spark-comm-paths 1\nall_reduce 2 * -1 nccl\n", "'-1' is neither * nor a number"},
      {"spark-comm-paths 1\nall_reduce 2 * 64 three_shot\n", "'three_shot' is none of: nccl"},
  };

  for (const auto& each : cases) {
    try {
      static_cast<void>(path_table::parse(each.text, "test"));
      ADD_FAILURE() << each.text << " was accepted";
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument);
      EXPECT_NE(failure.message().find(each.expected), std::string::npos) << failure.message();
    }
  }
}

TEST(path_table, is_read_from_a_file_that_is_named_in_failures) {
  const std::string file = testing::TempDir() + "path_table_test.txt";
  std::ofstream{file} << path_table::defaults(runtime_kind::nvidia).text();
  EXPECT_EQ(path_table::load(file), path_table::defaults(runtime_kind::nvidia));
  std::filesystem::remove(file);
  try {
    static_cast<void>(path_table::load(file));
    ADD_FAILURE() << "a missing file was read";
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::system_failed);
    EXPECT_NE(failure.message().find(file), std::string::npos);
  }
}

TEST(path_table, defaults_leave_the_host_runtime_to_its_own_collectives) {
  EXPECT_TRUE(path_table::defaults(runtime_kind::host).rules().empty());
  const path_table gpu = path_table::defaults(runtime_kind::nvidia);
  const path_capabilities near = all_open(2);
  path_capabilities far = all_open(2, world_reach::far);
  far.staging_bytes = 0;
  far.low_latency_bytes = 0;
  EXPECT_EQ(choose_path(gpu, sum_of(8 * kib), near), low_latency);
  EXPECT_EQ(choose_path(gpu, sum_of(256 * kib), near), one_shot);
  EXPECT_EQ(choose_path(gpu, sum_of(256 * kib), all_open(4)), two_shot);
  EXPECT_EQ(choose_path(gpu, sum_of(2048 * kib), near), nccl);
  EXPECT_EQ(choose_path(gpu, sum_of(8), far), nccl);
  EXPECT_EQ(choose_path(gpu, sum_of(64 * kib), far), exchange);
  EXPECT_EQ(choose_path(gpu, sum_of(512 * kib), far), nccl);
}

TEST(path_table, says_what_a_world_needs) {
  const path_table rules = table(
      "all_reduce 2 * * exchange\n"
      "all_reduce 4 * * one_shot\n"
      "all_reduce * * * nccl\n");
  EXPECT_TRUE(uses_kernels(rules, 2));
  EXPECT_FALSE(uses_peer_memory(rules, 2));
  EXPECT_FALSE(uses_kernels(rules, 3));
  EXPECT_TRUE(uses_peer_memory(rules, 4));
}

}  // namespace
}  // namespace spark_comm
