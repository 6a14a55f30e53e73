// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/scripted_probe.hpp"

#include <spark_comm/supervise/captured.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

constexpr time_point start{1000s};

captured_operation captured(scripted_probe& probe, std::uint64_t sequence) {
  const in_flight_operation made = probe.operation(sequence);
  probe.set(sequence, probe_state::done);
  return {.record = made.record, .limit = 2s, .probe = made.probe};
}

TEST(captured, an_operation_that_nobody_runs_does_not_run_out_of_time) {
  scripted_probe probe;
  captured_operations graphs;
  graphs.add(captured(probe, 1));
  graphs.poll(start);
  graphs.poll(start + 24h);
  EXPECT_THAT(graphs.running(), IsEmpty());
}

TEST(captured, a_run_counts_from_when_it_was_first_seen) {
  scripted_probe probe;
  captured_operations graphs;
  graphs.add(captured(probe, 1));
  graphs.add(captured(probe, 2));
  probe.set(2, probe_state::pending);
  graphs.poll(start);
  graphs.poll(start + 1s);
  const auto running = graphs.running();
  ASSERT_EQ(running.size(), 1U);
  EXPECT_EQ(running[0].record.sequence, 2U);
  EXPECT_EQ(running[0].started_at, start);
  EXPECT_EQ(running[0].limits.running, 2s);
  EXPECT_EQ(running[0].limits.queued, operation_limits::none);
}

TEST(captured, every_run_has_a_clock_of_its_own) {
  scripted_probe probe;
  captured_operations graphs;
  graphs.add(captured(probe, 1));
  probe.set(1, probe_state::pending);
  graphs.poll(start);
  probe.set(1, probe_state::done);
  graphs.poll(start + 1s);
  EXPECT_THAT(graphs.running(), IsEmpty());
  probe.set(1, probe_state::pending);
  graphs.poll(start + 2s);
  ASSERT_EQ(graphs.running().size(), 1U);
  EXPECT_EQ(graphs.running()[0].started_at, start + 2s);
}

}  // namespace
}  // namespace spark_comm
