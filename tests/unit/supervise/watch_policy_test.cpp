// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/watch_policy.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr time_point start{1000s};

/// Two healthy peers, one all-reduce (collective 7) submitted at the start, two seconds for each
/// clock.
struct scene {
  std::vector<watched_operation> pending;
  std::vector<peer_observation> peers;
  std::optional<native_failure> native;
  time_point now = start + 1s;

  scene() {
    watched_operation operation;
    operation.record.sequence = 9;
    operation.record.ordinal = 7;
    operation.submitted_at = start;
    operation.limits = {.queued = 2s, .running = 2s};
    pending.push_back(operation);
    for (const int rank : {1, 2}) {
      peer_observation peer;
      peer.rank = rank;
      peer.last_heard = now;
      peer.last_sequence = 9;
      peer.collectives_submitted = 7;
      peer.collectives_completed = 6;
      peers.push_back(peer);
    }
  }

  void at(duration after_start) {
    now = start + after_start;
    for (peer_observation& peer : peers) {
      peer.last_heard = now - 50ms;
    }
  }

  [[nodiscard]] std::optional<watch_verdict> judged() const {
    return judge(
        {.now = now, .pending = pending, .peers = peers, .native = native, .silence_limit = 5s});
  }
};

TEST(watch_policy, says_nothing_while_all_is_well) {
  scene all_well;
  EXPECT_FALSE(all_well.judged().has_value());
  all_well.pending.clear();
  all_well.at(1h);
  EXPECT_FALSE(all_well.judged().has_value());
  all_well.peers.clear();
  EXPECT_FALSE(all_well.judged().has_value());
}

TEST(watch_policy, decides_by_this_table) {
  struct row {
    const char* name;
    std::function<void(scene&)> change;
    std::optional<errc> code;
    std::vector<int> peers;
    const char* text;
  };

  const row rows[] = {
      {"just before the limit", [](scene& s) { s.at(1999ms); }, {}, {}, ""},
      {"queued too long",
       [](scene& s) { s.at(2s); },
       errc::timed_out,
       {},
       "has been queued behind others for 2.0 s; every rank has issued it, unfinished on "
       "ranks 1, 2 as well"},
      {"the running clock starts with the start",
       [](scene& s) {
         s.pending[0].started_at = start + 1500ms;
         s.at(3400ms);
       },
       {},
       {},
       ""},
      {"running too long",
       [](scene& s) {
         s.pending[0].started_at = start + 1500ms;
         s.at(3500ms);
       },
       errc::timed_out,
       {},
       "has been running for 2.0 s"},
      {"a run of a graph is held up by whoever is silent",
       [](scene& s) {
         s.pending[0].record.set(operation_flag::captured);
         s.pending[0].started_at = start;
         s.at(2s);
         s.peers[0].last_heard = start;
       },
       errc::timed_out,
       {1},
       "has been running in a graph for 2.0 s; rank 1 has not been heard for 2.0 s"},
      {"a run of a graph that nobody is silent about",
       [](scene& s) {
         s.pending[0].record.set(operation_flag::captured);
         s.pending[0].started_at = start;
         s.at(2s);
       },
       errc::timed_out,
       {},
       "in a graph for 2.0 s; all ranks are alive, and may not have launched the same graph"},
      {"no limit, no end",
       [](scene& s) {
         s.pending[0].limits = {};
         s.at(24h);
       },
       {},
       {},
       ""},
      {"one peer has not come",
       [](scene& s) {
         s.at(2s);
         s.peers[1].collectives_submitted = 6;
         s.peers[1].last_sequence = 8;
       },
       errc::timed_out,
       {2},
       "rank 2 has not issued it (its last is #8, heard 0.1 s ago)"},
      {"one peer is done",
       [](scene& s) {
         s.at(2s);
         s.peers[0].collectives_completed = 7;
       },
       errc::timed_out,
       {},
       "unfinished on rank 2 as well"},
      {"the other side of a receive is missing",
       [](scene& s) {
         s.pending[0].record.kind = operation_kind::recv;
         s.pending[0].record.root_or_peer = 2;
         s.peers[1].sends_submitted = 6;
         s.at(2s);
       },
       errc::timed_out,
       {2},
       "rank 2 has not issued the other side"},
      {"the other side of a send is there",
       [](scene& s) {
         s.pending[0].record.kind = operation_kind::send;
         s.pending[0].record.root_or_peer = 2;
         s.peers[1].receives_submitted = 7;
         s.at(2s);
       },
       errc::timed_out,
       {},
       "every rank has issued it"},
      {"closed at once",
       [](scene& s) {
         s.peers[0].connection = peer_connection::closed;
         s.peers[0].close_reason = "connection reset";
       },
       errc::peer_lost,
       {1},
       "rank 1 is gone (connection reset)"},
      {"closed when idle",
       [](scene& s) {
         s.pending.clear();
         s.peers[0].connection = peer_connection::closed;
       },
       errc::peer_lost,
       {1},
       "rank 1 is gone"},
      {"left in order when idle",
       [](scene& s) {
         s.pending.clear();
         s.peers[0].connection = peer_connection::left;
       },
       {},
       {},
       ""},
      {"left after its part",
       [](scene& s) { s.peers[0].connection = peer_connection::left; },
       {},
       {},
       ""},
      {"left before its part",
       [](scene& s) {
         s.peers[0].connection = peer_connection::left;
         s.peers[0].collectives_submitted = 6;
       },
       errc::peer_lost,
       {1},
       "rank 1 closed its communicator and will not take part"},
      {"left, and has no part in the receive",
       [](scene& s) {
         s.pending[0].record.kind = operation_kind::recv;
         s.pending[0].record.root_or_peer = 2;
         s.peers[1].sends_submitted = 7;
         s.peers[0].connection = peer_connection::left;
       },
       {},
       {},
       ""},
      {"silent at the limit",
       [](scene& s) {
         s.pending.clear();
         s.at(10s);
         s.peers[1].last_heard = start + 5s;
       },
       {},
       {},
       ""},
      {"silent beyond the limit",
       [](scene& s) {
         s.pending.clear();
         s.at(10s);
         s.peers[1].last_heard = start + 4900ms;
       },
       errc::peer_lost,
       {2},
       "rank 2 has been silent for 5.1 s"},
      {"silence of who left is no failure",
       [](scene& s) {
         s.pending.clear();
         s.at(10s);
         s.peers[1].last_heard = start;
         s.peers[1].connection = peer_connection::left;
       },
       {},
       {},
       ""},
      {"a peer's time-out",
       [](scene& s) {
         s.peers[0].failure = failure_notice{
             .code = errc::timed_out, .origin = 1, .sequence = 3, .text = "too slow", .peers = {}};
       },
       errc::peer_lost,
       {1},
       "rank 1 failed first (timed_out): too slow"},
      {"whom a peer blames is lost to us as well",
       [](scene& s) {
         s.peers[0].failure = failure_notice{
             .code = errc::timed_out, .origin = 1, .sequence = 3, .text = "late", .peers = {2}};
       },
       errc::peer_lost,
       {2},
       "rank 1 failed first"},
      {"who blames us alone is the one we lost",
       [](scene& s) {
         s.peers[0].failure = failure_notice{
             .code = errc::timed_out, .origin = 1, .sequence = 3, .text = "late", .peers = {0}};
       },
       errc::peer_lost,
       {1},
       "rank 1 failed first"},
      {"a peer's mismatch is ours",
       [](scene& s) {
         s.peers[0].failure = failure_notice{.code = errc::mismatch,
                                             .origin = 1,
                                             .sequence = 3,
                                             .text = "count differs",
                                             .peers = {}};
       },
       errc::mismatch,
       {1},
       "count differs"},
      {"the native library goes first",
       [](scene& s) {
         s.native = native_failure{.code = errc::system_failed, .native = {}, .operation = {}};
         s.peers[1].connection = peer_connection::closed;
       },
       errc::system_failed,
       {2},
       "the communication library reported an error"},
  };
  for (const row& each : rows) {
    SCOPED_TRACE(each.name);
    scene changed;
    each.change(changed);
    const auto verdict = changed.judged();
    ASSERT_EQ(verdict.has_value(), each.code.has_value()) << (verdict ? verdict->text : "");
    if (verdict) {
      EXPECT_EQ(verdict->code, *each.code);
      EXPECT_EQ(verdict->peers, each.peers);
      EXPECT_THAT(verdict->text, HasSubstr(each.text));
    }
  }
}

TEST(watch_policy, a_time_out_says_which_operation_and_limit) {
  scene late;
  late.pending.push_back(late.pending[0]);
  late.pending[1].record.sequence = 10;
  late.at(2s);
  const auto verdict = late.judged();
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->operation->sequence, 9U);
  EXPECT_EQ(verdict->limit, 2s);
}

TEST(watch_policy, several_lost_peers_are_told_together) {
  scene lost;
  for (peer_observation& peer : lost.peers) {
    peer.connection = peer_connection::closed;
    peer.close_reason = "eof";
  }
  EXPECT_THAT(lost.judged()->peers, ElementsAre(1, 2));
  EXPECT_EQ(lost.judged()->text, "rank 1 is gone (eof); rank 2 is gone (eof)");
  EXPECT_EQ(lost.judged()->operation->sequence, 9U);
}

TEST(watch_policy, a_verdict_is_told_to_the_peers_as_a_notice) {
  scene late;
  late.at(2s);
  late.peers[1].collectives_submitted = 6;
  const failure_notice notice = to_notice(*late.judged(), 0);
  EXPECT_EQ(notice.code, errc::timed_out);
  EXPECT_EQ(notice.origin, 0);
  EXPECT_EQ(notice.sequence, 9U);
  EXPECT_THAT(notice.peers, ElementsAre(2));
  EXPECT_THAT(notice.text, HasSubstr("rank 2 has not issued it"));
}

TEST(watch_policy, a_world_of_one_is_told_its_time_only) {
  scene alone;
  alone.peers.clear();
  alone.at(2s);
  EXPECT_EQ(alone.judged()->text, "has been queued behind others for 2.0 s");
}

TEST(watch_policy, knows_the_next_limit) {
  scene now;
  EXPECT_EQ(next_limit(now.pending), start + 2s);
  now.pending[0].started_at = start + 1s;
  EXPECT_EQ(next_limit(now.pending), start + 3s);
  now.pending[0].limits.running = operation_limits::none;
  EXPECT_EQ(next_limit(now.pending), time_point::max());
  EXPECT_EQ(next_limit({}), time_point::max());
}

TEST(watch_policy, looks_more_often_as_a_limit_comes_near) {
  struct row {
    duration left, step;
  };

  const row rows[] = {
      {1h, 100ms}, {200ms, 100ms}, {50ms, 25ms}, {1ms, 1ms}, {0ms, 1ms}, {-5ms, 1ms}};
  for (const row& each : rows) {
    EXPECT_EQ(next_look(start, start + each.left, 100ms), start + each.step);
  }
  EXPECT_EQ(next_look(start, time_point::max(), 100ms), start + 100ms);
}

}  // namespace
}  // namespace spark_comm
