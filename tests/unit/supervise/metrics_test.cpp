// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const flight_identity who{.name = "tp", .rank = 1, .world_size = 2, .generation = 3};

operation_record reduce_of(std::uint64_t count, path_kind path = path_kind::nccl) {
  operation_record record;
  record.kind = operation_kind::all_reduce;
  record.dtype = data_type::float32;
  record.count_elements = count;
  record.path = path;
  return record;
}

TEST(metrics, count_operations_bytes_and_time) {
  communicator_metrics metrics{who};
  metrics.ended(reduce_of(100), 1ms);  // a bound belongs to its own bucket
  metrics.ended(reduce_of(100), 30ms);
  metrics.ended(reduce_of(100), 2min);  // beyond the last bound
  metrics.ended(reduce_of(1, path_kind::exchange), 2ms);
  const std::string text = metrics.exposition();
  const std::string labels = R"({communicator="tp",rank="1",operation="all_reduce",path="nccl")";
  EXPECT_THAT(text, HasSubstr("spark_comm_operation_bytes_total" + labels + "} 1200\n"));
  const auto bucket = [&](const std::string& bound) {
    return "spark_comm_operation_seconds_bucket" + labels + ",le=\"" + bound + "\"} ";
  };
  EXPECT_THAT(text, HasSubstr(bucket("0.001") + "1\n"));
  EXPECT_THAT(text, HasSubstr(bucket("0.01") + "1\n"));
  EXPECT_THAT(text, HasSubstr(bucket("0.05") + "2\n"));
  EXPECT_THAT(text, HasSubstr(bucket("60") + "2\n"));
  EXPECT_THAT(text, HasSubstr(bucket("+Inf") + "3\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_operation_seconds_count" + labels + "} 3\n"));
  EXPECT_THAT(text, HasSubstr(R"(path="exchange"} 1)"));
}

TEST(metrics, count_no_bytes_where_none_are_moved) {
  communicator_metrics metrics{who};
  operation_record barrier = reduce_of(7);
  barrier.kind = operation_kind::barrier;
  metrics.ended(barrier, 1ms);
  EXPECT_THAT(
      metrics.exposition(),
      HasSubstr(R"(bytes_total{communicator="tp",rank="1",operation="barrier",path="nccl"} 0)"));
}

TEST(metrics, show_every_code_from_the_start) {
  communicator_metrics metrics{who};
  metrics.failed(errc::peer_lost);
  const std::string text = metrics.exposition();
  for (const errc code : all_errcs) {
    const std::string count = code == errc::peer_lost ? "1" : "0";
    EXPECT_THAT(text,
                HasSubstr("spark_comm_errors_total{communicator=\"tp\",rank=\"1\",code=\"" +
                          std::string{name_of(code)} + "\"} " + count + "\n"));
  }
}

TEST(metrics, show_where_peers_are) {
  communicator_metrics metrics{who};
  metrics.looked({.pending = 2,
                  .oldest_pending_seconds = 1.5,
                  .collectives_submitted = 9,
                  .collectives_completed = 7,
                  .peers = {{.rank = 0,
                             .silent_seconds = 0.25,
                             .collectives_submitted = 8,
                             .collectives_completed = 6,
                             .is_connected = false}}});
  const std::string text = metrics.exposition();
  const std::string mine = R"({communicator="tp",rank="1"} )";
  const std::string theirs = R"({communicator="tp",rank="1",peer="0"} )";
  EXPECT_THAT(text, HasSubstr("spark_comm_operations_pending" + mine + "2\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_oldest_pending_seconds" + mine + "1.5\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_collectives_submitted" + mine + "9\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_collectives_completed" + mine + "7\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_peer_silence_seconds" + theirs + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_peer_connected" + theirs + "0\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_peer_collectives_completed" + theirs + "6\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_looks_total" + mine + "1\n"));
  EXPECT_THAT(text, HasSubstr("spark_comm_generation" + mine + "3\n"));
}

TEST(metrics, go_down_when_supervision_ends) {
  communicator_metrics metrics{who};
  EXPECT_THAT(metrics.exposition(), HasSubstr(R"(spark_comm_up{communicator="tp",rank="1"} 1)"));
  metrics.stopped();
  EXPECT_THAT(metrics.exposition(), HasSubstr(R"(spark_comm_up{communicator="tp",rank="1"} 0)"));
}

TEST(metrics, escape_what_the_format_wants_escaped) {
  const communicator_metrics metrics{{.name = "a\"b\\c\nd"}};
  EXPECT_THAT(metrics.exposition(), HasSubstr(R"(communicator="a\"b\\c\nd")"));
  EXPECT_THAT(metrics.exposition(), Not(HasSubstr("c\nd")));
}

}  // namespace
}  // namespace spark_comm
