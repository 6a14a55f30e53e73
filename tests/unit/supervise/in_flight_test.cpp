// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/scripted_probe.hpp"

#include <spark_comm/supervise/in_flight.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr time_point start{1000s};

/// The sequence numbers that a poll told about, with what it told.
struct told {
  std::uint64_t sequence;
  probe_state state;
  friend bool operator==(const told&, const told&) = default;
};

std::vector<told> poll(in_flight_table& table, time_point now = start) {
  std::vector<told> changes;
  table.poll(now, [&](const in_flight_change& change) {
    changes.push_back({change.operation.record.sequence, change.result.state});
  });
  return changes;
}

TEST(in_flight, follows_an_operation_from_start_to_end) {
  scripted_probe probe;
  in_flight_table table;
  ASSERT_TRUE(table.push(probe.operation(1)));
  EXPECT_THAT(poll(table, start + 1s), ElementsAre(told{1, probe_state::pending}));
  ASSERT_EQ(table.pending().size(), 1U);
  EXPECT_EQ(table.pending()[0].started_at, start) << "nobody was before it when it was submitted";
  EXPECT_THAT(poll(table, start + 2s), IsEmpty());
  EXPECT_EQ(table.pending()[0].started_at, start);
  probe.set(1, probe_state::done);
  EXPECT_THAT(poll(table), ElementsAre(told{1, probe_state::done}));
  EXPECT_THAT(table.pending(), IsEmpty());
  EXPECT_THAT(poll(table), IsEmpty());
}

TEST(in_flight, starts_an_operation_when_the_one_before_it_has_ended) {
  scripted_probe probe;
  in_flight_table table;
  for (const std::uint64_t sequence : {1U, 2U, 3U}) {
    table.push(probe.operation(sequence));
  }
  EXPECT_THAT(poll(table), ElementsAre(told{1, probe_state::pending}));
  EXPECT_FALSE(table.pending()[1].started_at.has_value());
  probe.set(1, probe_state::done);
  EXPECT_THAT(poll(table, start + 5s),
              ElementsAre(told{1, probe_state::done}, told{2, probe_state::pending}));
  EXPECT_EQ(table.pending()[0].started_at, start + 5s);
  EXPECT_FALSE(table.pending()[1].started_at.has_value());
  probe.set(2, probe_state::done);
  probe.set(3, probe_state::done);
  EXPECT_THAT(poll(table, start + 6s),
              ElementsAre(told{2, probe_state::done}, told{3, probe_state::done}));
}

TEST(in_flight, finds_where_each_stream_stands) {
  scripted_probe probe;
  in_flight_table table;
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) {
    table.push(probe.operation(sequence, sequence % 2));
  }
  EXPECT_THAT(poll(table),
              ElementsAre(told{1, probe_state::pending}, told{2, probe_state::pending}));
  probe.set(1, probe_state::done);
  EXPECT_THAT(poll(table), ElementsAre(told{1, probe_state::done}, told{3, probe_state::pending}));
  EXPECT_EQ(table.pending().size(), 5U);
  EXPECT_EQ(table.pending()[0].record.sequence, 2U);
}

TEST(in_flight, asks_few_of_many_and_tells_all_that_ended_in_order) {
  constexpr std::uint64_t many = 256;
  for (const std::uint64_t ended : {0U, 1U, 77U, 255U, 256U}) {
    scripted_probe probe;
    in_flight_table table;
    for (std::uint64_t sequence = 1; sequence <= many; ++sequence) {
      probe.set(sequence, sequence <= ended ? probe_state::done : probe_state::pending);
      table.push(probe.operation(sequence));
    }
    const auto changes = poll(table);
    ASSERT_EQ(changes.size(), ended + (ended < many ? 1 : 0));  // the next one has started
    for (std::size_t each = 0; each < ended; ++each) {
      EXPECT_EQ(changes[each], (told{each + 1, probe_state::done}));
    }
    EXPECT_LE(probe.asked(), 9);
    EXPECT_EQ(table.pending().size(), many - ended);
  }
}

TEST(in_flight, a_failure_is_told_with_its_number_and_ends_the_operation) {
  scripted_probe probe;
  in_flight_table table;
  table.push(probe.operation(1));
  probe.fail(1, errc::device_failed, native_domain::cuda, 700);
  probe_result seen;
  table.poll(start, [&](const in_flight_change& change) { seen = change.result; });
  EXPECT_EQ(seen.code, errc::device_failed);
  EXPECT_EQ(seen.native_number, 700);
  EXPECT_THAT(table.pending(), IsEmpty());
}

TEST(in_flight, is_bounded_and_says_when_it_is_full) {
  scripted_probe probe;
  in_flight_table table{4};
  EXPECT_FALSE(table.is_crowded());
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence) {
    EXPECT_TRUE(table.push(probe.operation(sequence)));
  }
  EXPECT_TRUE(table.is_crowded());
  EXPECT_FALSE(table.push(probe.operation(5)));
  for (std::uint64_t sequence = 5; sequence <= 20; ++sequence) {
    poll(table);
    EXPECT_EQ(table.is_crowded(), sequence > 18);  // the list behind the ring is full by then
    EXPECT_TRUE(table.push(probe.operation(sequence))) << sequence;
  }
  poll(table);
  EXPECT_EQ(table.pending().size(), 16U);
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    probe.set(sequence, probe_state::done);
  }
  EXPECT_EQ(poll(table).size(), 16U);
  EXPECT_EQ(poll(table).size(), 4U);
}

TEST(in_flight, knows_where_pending_ones_are_in_the_flight_record) {
  scripted_probe probe;
  in_flight_table table;
  for (const std::uint64_t sequence : {1U, 2U}) {
    in_flight_operation operation = probe.operation(sequence);
    operation.flight_index = 40 + sequence;
    table.push(operation);
  }
  probe.set(1, probe_state::done);
  poll(table);
  EXPECT_EQ(table.flight_index_of(0), 42U);
}

TEST(in_flight, forgets_everything_when_cleared) {
  scripted_probe probe;
  in_flight_table table{8};
  table.push(probe.operation(1));
  poll(table);
  table.push(probe.operation(2));
  table.clear();
  EXPECT_THAT(poll(table), IsEmpty());
  EXPECT_THAT(table.pending(), IsEmpty());
  table.push(probe.operation(3));
  EXPECT_THAT(poll(table), ElementsAre(told{3, probe_state::pending}));
}

TEST(in_flight, works_between_two_threads) {
  scripted_probe probe;
  in_flight_table table{64};
  constexpr std::uint64_t last = scripted_probe::most - 1;
  std::thread watchdog{[&] {
    std::uint64_t expected = 1;
    while (expected <= last) {
      for (const told& each : poll(table)) {
        EXPECT_EQ(each, (told{expected, probe_state::done}));
        ++expected;
      }
    }
  }};
  for (std::uint64_t sequence = 1; sequence <= last; ++sequence) {
    probe.set(sequence, probe_state::done);
    while (!table.push(probe.operation(sequence))) {
      std::this_thread::yield();
    }
  }
  watchdog.join();
}

}  // namespace
}  // namespace spark_comm
