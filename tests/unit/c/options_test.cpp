// SPDX-License-Identifier: AGPL-3.0-only
// That every field of the C join options reaches the library's, and that zero leaves the default.
#include "support/expect_error.hpp"

#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/join_options.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/spark_comm.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace spark_comm {
namespace {

using testing::expect_error;

constexpr c::arguments check{"the test"};
constexpr std::int64_t too_large = std::int64_t{1} << 40U;

TEST(c_join_options, zero_is_the_default_everywhere) {
  const join_options made = c::to_join_options({}, check);
  const join_options expected{};
  EXPECT_EQ(made.name, expected.name);
  EXPECT_EQ(made.deadline, expected.deadline);
  EXPECT_EQ(made.operation_deadline, expected.operation_deadline);
  EXPECT_EQ(made.abort_deadline, expected.abort_deadline);
  EXPECT_EQ(made.device, expected.device);
  EXPECT_EQ(made.sharing, expected.sharing);
  EXPECT_EQ(made.key.has_value(), expected.key.has_value());
  EXPECT_EQ(made.supervise.enabled, expected.supervise.enabled);
  EXPECT_EQ(made.supervise.check, expected.supervise.check);
  EXPECT_EQ(made.supervise.heartbeat_interval, expected.supervise.heartbeat_interval);
  EXPECT_EQ(made.supervise.silence_limit, expected.supervise.silence_limit);
  EXPECT_EQ(made.supervise.record_directory, expected.supervise.record_directory);
  EXPECT_EQ(made.supervise.record_capacity, expected.supervise.record_capacity);
  EXPECT_EQ(made.paths.table_file, expected.paths.table_file);
  EXPECT_EQ(made.paths.table, expected.paths.table);
  EXPECT_EQ(made.paths.max_bytes, expected.paths.max_bytes);
  EXPECT_EQ(made.paths.max_streams, expected.paths.max_streams);
  EXPECT_EQ(made.nccl.min_ctas, expected.nccl.min_ctas);
  EXPECT_EQ(made.nccl.net_name, expected.nccl.net_name);
  EXPECT_FALSE(made.on_listening);
}

TEST(c_join_options, every_field_arrives) {
  std::string heard;
  spark_comm_join_options given{};
  given.name = "tp";
  given.deadline_ns = 1;
  given.operation_deadline_ns = 2;
  given.abort_deadline_ns = 3;
  given.device = {.value = 0, .is_set = 1};
  given.share_device = 1;
  given.supervision = SPARK_COMM_SUPERVISION_OFF;
  given.mismatch_check = SPARK_COMM_MISMATCH_STRICT;
  given.path_max_streams = 9;
  given.key = "a key of sixteen bytes or more";
  given.heartbeat_interval_ns = 4;
  given.silence_limit_ns = 5;
  given.record_directory = "/tmp/flights";
  given.record_capacity = 6;
  given.path_table_file = "table";
  given.path_table = "spark-comm-paths 1";
  given.path_max_bytes = {.value = 0, .is_set = 1};
  given.nccl_min_ctas = {.value = 1, .is_set = 1};
  given.nccl_max_ctas = {.value = 2, .is_set = 1};
  given.nccl_cga_cluster_size = {.value = 0, .is_set = 1};
  given.nccl_traffic_class = {.value = 4, .is_set = 1};
  given.nccl_channels_per_net_peer = {.value = 5, .is_set = 1};
  given.nccl_net_name = "IB";
  given.on_listening = [](void* data, const char* address) {
    *static_cast<std::string*>(data) = address;
  };
  given.on_listening_data = &heard;
  given.replaces_lost_rank = 1;

  const join_options made = c::to_join_options(given, check);
  using std::chrono::nanoseconds;
  EXPECT_EQ(made.name, "tp");
  EXPECT_EQ(made.deadline, nanoseconds{1});
  EXPECT_EQ(made.operation_deadline, nanoseconds{2});
  EXPECT_EQ(made.abort_deadline, nanoseconds{3});
  EXPECT_EQ(made.device, 0);
  EXPECT_EQ(made.sharing, device_sharing::allowed);
  EXPECT_TRUE(made.key.has_value());
  EXPECT_EQ(made.supervise.enabled, supervision::off);
  EXPECT_EQ(made.supervise.check, mismatch_check::strict);
  EXPECT_EQ(made.supervise.heartbeat_interval, nanoseconds{4});
  EXPECT_EQ(made.supervise.silence_limit, nanoseconds{5});
  EXPECT_EQ(made.supervise.record_directory, "/tmp/flights");
  EXPECT_EQ(made.supervise.record_capacity, 6U);
  EXPECT_EQ(made.paths.table_file, "table");
  EXPECT_EQ(made.paths.table, "spark-comm-paths 1");
  EXPECT_EQ(made.paths.max_bytes, 0U);
  EXPECT_EQ(made.paths.max_streams, 9);
  EXPECT_EQ(made.nccl.min_ctas, 1);
  EXPECT_EQ(made.nccl.max_ctas, 2);
  EXPECT_EQ(made.nccl.cga_cluster_size, 0);
  EXPECT_EQ(made.nccl.traffic_class, 4);
  EXPECT_EQ(made.nccl.n_channels_per_net_peer, 5);
  EXPECT_EQ(made.nccl.net_name, "IB");
  EXPECT_EQ(made.way_in, rendezvous::entry::replacing);
  made.on_listening("127.0.0.1:1");
  EXPECT_EQ(heard, "127.0.0.1:1");
}

TEST(c_join_options, wrong_values_are_refused_by_the_name_of_their_field) {
  const auto refused = [](const char* words, auto change) {
    spark_comm_join_options given{};
    change(given);
    expect_error(errc::invalid_argument, words, [&] { return c::to_join_options(given, check); });
  };
  refused("deadline_ns", [](auto& given) { given.deadline_ns = -1; });
  refused("abort_deadline_ns", [](auto& given) { given.abort_deadline_ns = -1; });
  refused("silence_limit_ns", [](auto& given) { given.silence_limit_ns = -1; });
  refused("supervision 3", [](auto& given) { given.supervision = 3; });
  refused("mismatch_check -1", [](auto& given) { given.mismatch_check = -1; });
  refused("device", [](auto& given) { given.device = {.value = too_large, .is_set = 1}; });
  refused("nccl_max_ctas",
          [](auto& given) { given.nccl_max_ctas = {.value = too_large, .is_set = 1}; });
  refused("path_max_bytes", [](auto& given) { given.path_max_bytes = {.value = -1, .is_set = 1}; });
  refused("key and key_file", [](auto& given) {
    given.key = "a key of sixteen bytes or more";
    given.key_file = "/tmp/key";
  });
}

}  // namespace
}  // namespace spark_comm
