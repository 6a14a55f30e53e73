// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/fake_session.hpp"
#include "unit/supervise/manual_time.hpp"
#include "unit/supervise/scripted_probe.hpp"

#include <spark_comm/supervise/captured.hpp>
#include <spark_comm/supervise/ticker.hpp>
#include <spark_comm/supervise/watchdog.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A rank of a world, its watchdog stepped by hand.
class watched_rank {
 public:
  watched_rank(fake_network& network, int rank, int world_size, const manual_time& time)
      : log(world_size),
        record(flight_record::create({.rank = rank, .world_size = world_size}, "", 64)),
        line(
            network.at(rank), log, {.generation = 1}, [] {}, diagnostics{}, time),
        dog({.rank = rank,
             .table = &table,
             .captured = &captured,
             .record = &record,
             .log = &log,
             .line = &line},
            {},
            {.on_failure = [this](const watch_verdict& verdict) { verdicts.push_back(verdict); },
             .native_health = [this] { return health; },
             .on_thread_start = {}},
            diagnostics{},
            time),
        time_(&time) {
    line.start();
  }

  /// As the communicator does it: record, launch, follow.
  void issue(std::uint64_t count = 4) {
    in_flight_operation operation = probe.operation(log.last_sequence() + 1);
    operation.record.count_elements = count;
    operation.submitted_at = time_->now();
    log.append(operation.record);
    operation.flight_index = record.submitted(operation.record, time_->now());
    table.push(operation);
  }

  time_point step() { return dog.step(time_->now()); }

  scripted_probe probe;
  signature_log log;
  flight_record record;
  in_flight_table table;
  captured_operations captured;
  lifeline line;
  std::optional<native_failure> health;
  std::vector<watch_verdict> verdicts;
  watchdog dog;

 private:
  const manual_time* time_;
};

class watchdog_of_two : public ::testing::Test {
 protected:
  void pass(duration span) {
    for (duration gone = 0s; gone < span; gone += 100ms) {
      time.advance(100ms);
      zero.step();
      one.step();
      network.deliver();
      zero.step();
      one.step();
      network.deliver();
    }
  }

  manual_time time;
  fake_network network{2};
  watched_rank zero{network, 0, 2, time};
  watched_rank one{network, 1, 2, time};
};

TEST_F(watchdog_of_two, lets_well_alone) {
  zero.issue();
  one.issue();
  pass(1s);
  zero.probe.set(1, probe_state::done);
  one.probe.set(1, probe_state::done);
  pass(10s);
  EXPECT_TRUE(zero.verdicts.empty());
  EXPECT_EQ(zero.record.find(0)->stage, flight_stage::completed);
  EXPECT_TRUE(zero.record.find(0)->started_ns.has_value());
  EXPECT_EQ(zero.line.peers()[0].collectives_completed, 1U);
}

TEST_F(watchdog_of_two, sees_a_run_of_a_graph_that_does_not_end) {
  in_flight_operation made = zero.probe.operation(1);
  made.record.set(operation_flag::captured);
  zero.captured.add({.record = made.record, .limit = 2s, .probe = made.probe});
  zero.probe.set(1, probe_state::done);
  pass(10s);
  EXPECT_TRUE(zero.verdicts.empty()) << "nobody has run it";
  zero.probe.set(1, probe_state::pending);
  zero.dog.hold_probes();  // what reads memory only goes on
  pass(1900ms);
  EXPECT_TRUE(zero.verdicts.empty());
  pass(300ms);
  ASSERT_EQ(zero.verdicts.size(), 1U);
  EXPECT_EQ(zero.verdicts[0].code, errc::timed_out);
  EXPECT_THAT(zero.verdicts[0].peers, ElementsAre(1));
  EXPECT_THAT(zero.verdicts[0].text,
              HasSubstr("has been running in a graph for 2.0 s; rank 1 is alive, and may not have "
                        "launched the same graph"));
  zero.dog.resume_probes();
}

TEST_F(watchdog_of_two, names_the_rank_that_did_not_come) {
  zero.issue();
  pass(1900ms);
  EXPECT_TRUE(zero.verdicts.empty());
  pass(200ms);
  ASSERT_EQ(zero.verdicts.size(), 1U);
  EXPECT_EQ(zero.verdicts[0].code, errc::timed_out);
  EXPECT_THAT(zero.verdicts[0].peers, ElementsAre(1));
  EXPECT_THAT(zero.verdicts[0].text, HasSubstr("rank 1 has not issued it"));
  EXPECT_EQ(zero.record.find(0)->code, errc::timed_out);
  const error thrown = to_error(zero.verdicts[0], {});
  EXPECT_THAT(thrown.what(), HasSubstr("all_reduce #1 (4 x bytes)"));
  EXPECT_THAT(thrown.what(), HasSubstr("deadline 2000 ms"));
  ASSERT_EQ(one.verdicts.size(), 1U);  // and nobody else waits out a deadline of its own
  EXPECT_EQ(one.verdicts[0].code, errc::peer_lost);
  EXPECT_THAT(one.verdicts[0].text, HasSubstr("rank 0 failed first (timed_out)"));
  pass(5s);
  EXPECT_EQ(zero.verdicts.size(), 1U);
}

TEST_F(watchdog_of_two, a_mismatch_is_told_on_both_within_two_beats) {
  zero.issue(409600);
  one.issue(409598);
  pass(200ms);
  for (const watched_rank* rank : {&zero, &one}) {
    ASSERT_EQ(rank->verdicts.size(), 1U);
    EXPECT_EQ(rank->verdicts[0].code, errc::mismatch);
    EXPECT_THAT(rank->verdicts[0].text, HasSubstr("409600 x"));
    EXPECT_THAT(rank->verdicts[0].text, HasSubstr("409598 x"));
  }
}

TEST_F(watchdog_of_two, a_dead_peer_is_told_at_the_next_look) {
  zero.issue();
  one.issue();
  zero.step();
  network.close(1, "eof");
  zero.step();
  ASSERT_EQ(zero.verdicts.size(), 1U);
  EXPECT_EQ(zero.verdicts[0].code, errc::peer_lost);
  EXPECT_EQ(zero.verdicts[0].operation->sequence, 1U);
}

TEST_F(watchdog_of_two, a_failed_probe_fails_the_communicator_with_its_number) {
  zero.issue();
  one.issue();
  zero.probe.fail(1, errc::device_failed, native_domain::cuda, 700);
  pass(100ms);
  ASSERT_EQ(zero.verdicts.size(), 1U);
  EXPECT_EQ(zero.verdicts[0].code, errc::device_failed);
  EXPECT_EQ(zero.verdicts[0].native.number, 700);
  EXPECT_EQ(zero.verdicts[0].text, "the operation failed on the device");
  EXPECT_EQ(zero.record.find(0)->native_number, 700);
  EXPECT_EQ(one.verdicts.size(), 1U);
}

TEST_F(watchdog_of_two, the_librarys_own_error_is_heard) {
  one.health = native_failure{.code = errc::system_failed, .native = {}, .operation = {}};
  pass(100ms);
  ASSERT_EQ(one.verdicts.size(), 1U);
  EXPECT_EQ(one.verdicts[0].code, errc::system_failed);
  EXPECT_THAT(zero.verdicts.at(0).text, HasSubstr("rank 1 failed first (system_failed)"));
}

TEST_F(watchdog_of_two, asks_nothing_while_a_capture_is_on) {
  zero.issue();
  one.issue();
  one.probe.set(1, probe_state::done);
  zero.dog.hold_probes();
  zero.dog.hold_probes();
  pass(5s);
  EXPECT_EQ(zero.probe.asked(), 0);
  EXPECT_TRUE(zero.verdicts.empty());
  EXPECT_TRUE(one.verdicts.empty());  // heartbeats went on
  zero.dog.resume_probes();
  pass(1s);
  EXPECT_EQ(zero.probe.asked(), 0);
  zero.probe.set(1, probe_state::done);
  zero.dog.resume_probes();
  pass(1s);
  EXPECT_TRUE(zero.verdicts.empty());
  EXPECT_EQ(zero.record.find(0)->stage, flight_stage::completed);
}

TEST_F(watchdog_of_two, looks_often_only_when_a_limit_is_near) {
  EXPECT_EQ(zero.step(), time.now() + 100ms);
  zero.issue();
  EXPECT_EQ(zero.step(), time.now() + 100ms);
  time.advance(1990ms);
  EXPECT_EQ(zero.step(), time.now() + 5ms);
  time.advance(9500us);
  EXPECT_EQ(zero.step(), time.now() + 1ms);
}

TEST_F(watchdog_of_two, what_a_hook_throws_is_reported_and_the_watch_goes_on) {
  std::vector<std::string> said;
  watchdog dog{{.rank = 0,
                .table = &zero.table,
                .captured = &zero.captured,
                .record = &zero.record,
                .log = &zero.log},
               {},
               {.on_failure = [](const watch_verdict&) {},
                .native_health = []() -> std::optional<native_failure> {
                  throw std::runtime_error{"no answer"};
                },
                .on_thread_start = {}},
               diagnostics{[&](const diagnostic& message) { said.push_back(message.text); }},
               time};
  EXPECT_EQ(dog.step(time.now()), time.now() + 100ms);
  EXPECT_THAT(said, ElementsAre("watchdog: no answer"));
}

TEST(watchdog, runs_on_a_thread_of_its_own) {
  scripted_probe probe;
  in_flight_table table;
  captured_operations captured;
  signature_log log{1};
  auto record = flight_record::create({}, "", 64);
  std::promise<watch_verdict> failed;
  std::atomic<bool> is_prepared{false};
  watchdog dog{{.rank = 0, .table = &table, .captured = &captured, .record = &record, .log = &log},
               {},
               {.on_failure = [&](const watch_verdict& verdict) { failed.set_value(verdict); },
                .native_health = {},
                .on_thread_start = [&] { is_prepared = true; }}};
  dog.start();
  in_flight_operation operation = probe.operation(1);
  operation.submitted_at = steady_time().now();
  operation.limits = {.queued = 50ms, .running = 50ms};
  table.push(operation);
  dog.wake();
  auto verdict = failed.get_future();
  ASSERT_EQ(verdict.wait_for(10s), std::future_status::ready);
  EXPECT_EQ(verdict.get().code, errc::timed_out);
  EXPECT_TRUE(is_prepared);
  dog.stop();
  dog.stop();
}

TEST(ticker, steps_at_once_then_when_woken_and_stops) {
  std::atomic<int> steps{0};
  ticker clock;
  clock.start([&] {
    ++steps;
    return time_point::max();
  });
  while (steps < 1) {
    std::this_thread::yield();
  }
  clock.wake();
  while (steps < 2) {
    std::this_thread::yield();
  }
  clock.stop();
  EXPECT_EQ(steps, 2);
}

TEST(ticker, steps_again_when_the_time_has_come) {
  std::atomic<int> steps{0};
  ticker clock;
  clock.start([&] {
    ++steps;
    return steady_time().now() + 1ms;
  });
  while (steps < 5) {
    std::this_thread::yield();
  }
}

TEST(ticker, may_be_stopped_before_it_started) {
  ticker clock;
  clock.wake();
  clock.stop();
}

}  // namespace
}  // namespace spark_comm
