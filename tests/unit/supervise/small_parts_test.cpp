// SPDX-License-Identifier: AGPL-3.0-only
// The small public functions of supervision that others are built of.
#include "unit/supervise/fake_session.hpp"
#include "unit/supervise/manual_time.hpp"
#include "unit/supervise/scripted_probe.hpp"

#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/lane_compare.hpp>
#include <spark_comm/supervise/lifeline.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/trace.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>

namespace spark_comm {
namespace {

TEST(lane_of, puts_every_kind_on_its_lane) {
  for (const operation_kind kind : all_operation_kinds) {
    const lane_kind expected = kind == operation_kind::send   ? lane_kind::outbound
                               : kind == operation_kind::recv ? lane_kind::inbound
                                                              : lane_kind::collectives;
    EXPECT_EQ(lane_of(kind), expected) << name_of(kind);
  }
}

TEST(wall_ns, carries_a_steady_time_over_to_the_wall_clock) {
  flight_log log;
  log.wall_base_ns = 1'000'000;
  log.steady_base_ns = 400;
  EXPECT_EQ(wall_ns(log, 400), 1'000'000);
  EXPECT_EQ(wall_ns(log, 650), 1'000'250);
  EXPECT_EQ(wall_ns(log, 0), 999'600);
}

TEST(to_notice, tells_the_peers_what_the_verdict_says) {
  watch_verdict verdict;
  verdict.code = errc::timed_out;
  verdict.text = "has been running for 2.0 s";
  verdict.peers = {1, 3};
  verdict.operation = operation_record{.sequence = 9};
  const failure_notice notice = to_notice(verdict, 2);
  EXPECT_EQ(notice.code, errc::timed_out);
  EXPECT_EQ(notice.origin, 2);
  EXPECT_EQ(notice.sequence, std::optional<std::uint64_t>{9});
  EXPECT_EQ(notice.peers, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NE(notice.text.find("has been running"), std::string::npos);
}

TEST(flight_index_of, is_the_place_that_was_pushed_with_the_operation) {
  scripted_probe probe;
  in_flight_table table;
  in_flight_operation operation = probe.operation(1);
  operation.flight_index = 77;
  ASSERT_TRUE(table.push(operation));
  table.poll(time_point{}, [](const in_flight_change&) {});
  ASSERT_EQ(table.pending().size(), 1U);
  EXPECT_EQ(table.flight_index_of(0), 77U);
}

TEST(locate, gives_the_first_operation_that_differs_and_nothing_for_equal_ones) {
  const auto lane = [](std::uint64_t odd_one) {
    return [odd_one](std::uint64_t ordinal) -> std::optional<operation_record> {
      operation_record record{.sequence = ordinal, .ordinal = ordinal};
      record.count_elements = ordinal == odd_one ? 999 : 100 + ordinal;
      return record;
    };
  };
  EXPECT_FALSE(locate({.mine = lane(0), .theirs = lane(0)}, 0, 8));
  const auto found = locate({.mine = lane(0), .theirs = lane(5)}, 0, 8);
  ASSERT_TRUE(found);
  EXPECT_NE(describe(*found, 1).find("count"), std::string::npos);
  EXPECT_NE(describe(*found, 1).find("#5"), std::string::npos);
}

TEST(hang_up, ends_what_the_line_hears) {
  fake_network network{2};
  const manual_time time;
  const signature_log log{2};
  lifeline line{network.at(0), log, {}, [] {}, diagnostics{}, time};
  line.start();
  EXPECT_NE(network.at(0).listener(), nullptr);
  line.hang_up();
  EXPECT_EQ(network.at(0).listener(), nullptr);
}

}  // namespace
}  // namespace spark_comm
