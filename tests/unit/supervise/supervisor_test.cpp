// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/fake_session.hpp"
#include "unit/supervise/scripted_probe.hpp"
#include "unit/supervise/temporary_directory.hpp"

#include <spark_comm/supervise/flight_reader.hpp>
#include <spark_comm/supervise/supervisor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A network that carries by itself.
class live_network {
 public:
  explicit live_network(int world_size) : network(world_size) {}

  live_network(const live_network&) = delete;
  live_network& operator=(const live_network&) = delete;
  live_network(live_network&&) = delete;
  live_network& operator=(live_network&&) = delete;

  ~live_network() { stop(); }

  void stop() {
    is_over_ = true;
    if (carrier_.joinable()) {
      carrier_.join();
    }
  }

  fake_network network;

 private:
  std::atomic<bool> is_over_{false};
  std::thread carrier_{[this] {
    while (!is_over_) {
      network.deliver();
      std::this_thread::sleep_for(1ms);
    }
  }};
};

/// A supervised rank that acts as a communicator would.
class supervised_rank {
 public:
  supervised_rank(rendezvous::session* line,
                  int rank,
                  int world_size,
                  const supervise_options& options)
      : supervisor_(
            {.name = "tp", .rank = rank, .world_size = world_size, .generation = 1},
            line,
            options,
            {.on_failure = [this](const watch_verdict& verdict) { failed_.set_value(verdict); },
             .native_health = {},
             .on_thread_start = {}}) {
    supervisor_.start();
  }

  /// Until the watchdog has seen the operation end.
  void wait_for_end(std::uint64_t sequence) {
    std::optional<flight_entry> entry;
    while (!entry || entry->stage != flight_stage::completed) {
      std::this_thread::yield();
      entry = supervisor_.record().find(sequence - 1);
    }
  }

  /// False when it is not followed.
  bool issue(std::uint64_t count, duration limit = 30s) {
    in_flight_operation operation = probe.operation(++sequence_);
    operation.record.count_elements = count;
    operation.submitted_at = steady_time().now();
    operation.limits = {.queued = limit, .running = limit};
    operation.flight_index = supervisor_.note_submission(operation.record, operation.submitted_at);
    return supervisor_.follow(operation);
  }

  supervisor& operator*() { return supervisor_; }

  supervisor* operator->() { return &supervisor_; }

  [[nodiscard]] watch_verdict failure() {
    auto verdict = failed_.get_future();
    return verdict.wait_for(20s) == std::future_status::ready ? verdict.get() : watch_verdict{};
  }

  scripted_probe probe;

 private:
  std::promise<watch_verdict> failed_;
  std::uint64_t sequence_ = 0;
  supervisor supervisor_;
};

TEST(supervisor, a_mismatch_breaks_both_ranks) {
  live_network live{2};
  supervised_rank zero{&live.network.at(0), 0, 2, {}};
  supervised_rank one{&live.network.at(1), 1, 2, {}};
  zero.issue(409600);
  one.issue(409598);
  for (supervised_rank* rank : {&zero, &one}) {
    const watch_verdict verdict = rank->failure();
    EXPECT_EQ(verdict.code, errc::mismatch);
    EXPECT_THAT(verdict.text, HasSubstr("409598"));
  }
  live.stop();
}

TEST(supervisor, a_rank_that_stays_away_is_named_and_both_know) {
  live_network live{2};
  supervised_rank zero{&live.network.at(0), 0, 2, {}};
  supervised_rank one{&live.network.at(1), 1, 2, {}};
  const time_point start = steady_time().now();
  zero.issue(4, 300ms);
  const watch_verdict verdict = zero.failure();
  EXPECT_EQ(verdict.code, errc::timed_out);
  EXPECT_EQ(verdict.peers, std::vector<int>{1});
  EXPECT_GE(steady_time().now() - start, 300ms);
  EXPECT_EQ(one.failure().code, errc::peer_lost);
  live.stop();
}

TEST(supervisor, a_failure_of_ones_own_is_told_to_the_peers) {
  live_network live{2};
  supervised_rank zero{&live.network.at(0), 0, 2, {}};
  supervised_rank one{&live.network.at(1), 1, 2, {}};
  failure_notice notice;
  notice.code = errc::aborted;
  notice.origin = 0;
  notice.text = "the program asked for it";
  zero->announce_failure(notice);
  EXPECT_THAT(one.failure().text, HasSubstr("rank 0 failed first (aborted): the program asked"));
  live.stop();
}

TEST(supervisor, follows_operations_to_their_end_in_the_record) {
  const temporary_directory folder;
  supervise_options options;
  options.record_directory = folder.path();
  std::string path;
  {
    supervised_rank alone{nullptr, 0, 1, options};
    path = alone->record().path();
    // Goes ahead of the watchdog as far as the table has room, which crowds it and so wakes it.
    constexpr int lead = in_flight_table::default_capacity - 64;
    for (int each = 1; each <= 3000; ++each) {
      if (each > lead) {
        alone.wait_for_end(static_cast<std::uint64_t>(each - lead));
      }
      alone.probe.set(static_cast<std::uint64_t>(each), probe_state::done);
      ASSERT_TRUE(alone.issue(static_cast<std::uint64_t>(each)));
    }
    alone.wait_for_end(3000);
    alone->say_farewell();
    EXPECT_TRUE(alone->peers().empty());
    alone->stop(flight_end::closed);
    alone->stop(flight_end::broken);
  }
  const flight_log log = read_flight_record(path);
  EXPECT_EQ(log.end, flight_end::closed);
  ASSERT_EQ(log.entries.size(), 3000U);
  for (const flight_entry& entry : log.entries) {
    EXPECT_EQ(entry.stage, flight_stage::completed);
  }
}

std::string content_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(supervisor, shows_metrics_of_what_the_watchdog_saw) {
  const temporary_directory folder;
  live_network live{2};
  supervise_options options;
  options.heartbeat_interval = 5ms;
  options.metrics_directory = folder.path();
  {
    supervised_rank zero{&live.network.at(0), 0, 2, options};
    supervised_rank one{&live.network.at(1), 1, 2, options};
    for (supervised_rank* rank : {&zero, &one}) {
      rank->probe.set(1, probe_state::done);
      rank->issue(4);
    }
    for (supervised_rank* rank : {&zero, &one}) {
      while ((*rank)->record().recent(1).at(0).stage != flight_stage::completed) {
        std::this_thread::yield();
      }
    }
    one.issue(4, 50ms);
    EXPECT_EQ(one.failure().code, errc::timed_out);
    EXPECT_EQ(zero.failure().code, errc::peer_lost);
    live.stop();
  }
  const std::string one = content_of(folder.path() + "/spark_comm-tp-rank1.prom");
  for (const char* const line :
       {"spark_comm_up{communicator=\"tp\",rank=\"1\"} 0",
        "_seconds_count{communicator=\"tp\",rank=\"1\",operation=",
        "code=\"timed_out\"} 1",
        "spark_comm_collectives_submitted{communicator=\"tp\",rank=\"1\"} 2",
        "peer=\"0\"} "}) {
    EXPECT_THAT(one, HasSubstr(line));
  }
  EXPECT_THAT(content_of(folder.path() + "/spark_comm-tp-rank0.prom"),
              HasSubstr("code=\"peer_lost\"} 1"));
}

TEST(supervisor, keeps_no_metrics_where_nobody_asks_or_supervision_is_off) {
  const temporary_directory folder;
  supervise_options options;
  options.enabled = supervision::off;
  options.metrics_directory = folder.path();
  const supervised_rank off{nullptr, 0, 1, options};
  const supervised_rank unasked{nullptr, 0, 1, {}};
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(supervisor, says_where_metrics_cannot_be_written) {
  supervise_options options;
  options.metrics_directory = "/no/such/folder";
  try {
    const supervised_rank rank{nullptr, 0, 1, options};
    FAIL();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::system_failed);
    EXPECT_THAT(failure.what(), HasSubstr("/no/such/folder/spark_comm-tp-rank0.prom"));
  }
}

TEST(supervisor, agrees_before_a_launch_if_asked_to) {
  live_network live{2};
  supervise_options options;
  options.check = mismatch_check::strict;
  supervised_rank zero{&live.network.at(0), 0, 2, options};
  supervised_rank one{&live.network.at(1), 1, 2, options};
  operation_record record{.sequence = 1, .count_elements = 4};
  zero->note_submission(record, steady_time().now());
  EXPECT_EQ(zero->agree(record, deadline::after(20ms)), agreement::timed_out);
  operation_record same = record;
  one->note_submission(same, steady_time().now());
  EXPECT_EQ(one->agree(same, deadline::after(20s)), agreement::agreed);
  EXPECT_EQ(zero->agree(record, deadline::after(20s)), agreement::agreed);
  operation_record send = record;
  send.kind = operation_kind::send;
  send.root_or_peer = 1;
  zero->note_submission(send, steady_time().now());
  EXPECT_EQ(zero->agree(send, deadline::after(0s)), agreement::agreed);
  live.stop();
}

TEST(supervisor, does_nothing_when_it_is_off) {
  fake_network network{2};
  supervise_options options;
  options.enabled = supervision::off;
  supervised_rank zero{&network.at(0), 0, 2, options};
  EXPECT_FALSE(zero.issue(4));
  zero->announce_failure({});
  zero->say_farewell();
  EXPECT_EQ(network.at(0).listener(), nullptr);
  EXPECT_EQ(network.deliver(), 0U);
  EXPECT_EQ(zero->record().recent(5).size(), 1U);
}

TEST(supervisor, sees_a_captured_operation_hang) {
  supervised_rank alone{nullptr, 0, 1, {}};
  in_flight_operation made = alone.probe.operation(1);
  made.record.set(operation_flag::captured);
  alone.probe.set(1, probe_state::pending);
  alone->follow_captured({.record = made.record, .limit = 50ms, .probe = made.probe});
  const watch_verdict verdict = alone.failure();
  EXPECT_EQ(verdict.code, errc::timed_out);
  EXPECT_THAT(verdict.text, HasSubstr("has been running in a graph"));
}

TEST(supervisor, holds_its_probes_for_a_capture) {
  supervised_rank alone{nullptr, 0, 1, {}};
  alone->hold_probes();
  alone.issue(4, 50ms);
  alone.probe.set(1, probe_state::done);
  alone->resume_probes();
  alone.wait_for_end(1);
}

}  // namespace
}  // namespace spark_comm
