// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/supervise/fake_session.hpp"
#include "unit/supervise/manual_time.hpp"

#include <spark_comm/supervise/lifeline.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace spark_comm {
namespace {

using namespace std::chrono_literals;

/// A rank without its watchdog.
struct test_rank {
  test_rank(fake_network& network,
            int rank,
            int world_size,
            const manual_time& time,
            mismatch_check check)
      : log(world_size),
        line(
            network.at(rank),
            log,
            {.generation = 3, .check = check, .heartbeat_interval = 100ms},
            [this] { ++news; },
            diagnostics{},
            time) {
    line.start();
  }

  void all_reduce(std::uint64_t count) {
    operation_record record{.sequence = log.last_sequence() + 1, .count_elements = count};
    record.dtype = data_type::float32;
    log.append(record);
  }

  void pair(operation_kind kind, int peer, std::uint64_t count) {
    operation_record record{
        .sequence = log.last_sequence() + 1, .count_elements = count, .root_or_peer = peer};
    record.kind = kind;
    log.append(record);
  }

  signature_log log;
  std::atomic<int> news{0};
  lifeline line;
};

struct test_world {
  explicit test_world(int world_size, mismatch_check check = mismatch_check::background)
      : network(world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      ranks.emplace_back(network, rank, world_size, time, check);
    }
  }

  /// One heartbeat of every rank.
  void beat(duration span = 100ms) {
    time.advance(span);
    for (test_rank& rank : ranks) {
      rank.line.tick(time.now());
    }
    network.deliver();
  }

  manual_time time;
  fake_network network;
  std::deque<test_rank> ranks;
};

TEST(lifeline, beats_at_the_interval_and_not_in_between) {
  test_world world{3};
  test_rank& rank = world.ranks[0];
  const time_point start = world.time.now();
  EXPECT_EQ(rank.line.tick(start), start + 100ms);
  EXPECT_EQ(world.network.deliver(), 2U);
  EXPECT_EQ(rank.line.tick(start + 30ms), start + 100ms);
  EXPECT_EQ(world.network.deliver(), 0U);
  EXPECT_EQ(rank.line.tick(start + 105ms), start + 205ms);
  EXPECT_EQ(world.network.deliver(), 2U);
}

TEST(lifeline, peers_know_where_the_others_are) {
  test_world world{3};
  world.ranks[1].all_reduce(4);
  world.ranks[1].all_reduce(4);
  world.ranks[1].pair(operation_kind::send, 0, 1);
  world.ranks[1].pair(operation_kind::recv, 0, 1);
  world.ranks[1].pair(operation_kind::recv, 0, 1);
  world.beat();
  const auto peers = world.ranks[0].line.peers();
  ASSERT_EQ(peers.size(), 2U);
  EXPECT_EQ(peers[0].rank, 1);
  EXPECT_EQ(peers[0].last_sequence, 5U);
  EXPECT_EQ(peers[0].collectives_submitted, 2U);
  EXPECT_EQ(peers[0].sends_submitted, 1U);
  EXPECT_EQ(peers[0].receives_submitted, 2U);
  EXPECT_EQ(peers[0].last_heard, world.time.now());
  EXPECT_EQ(peers[1].collectives_submitted, 0U);
  EXPECT_EQ(world.ranks[2].line.peers()[1].sends_submitted, 0U);
  EXPECT_EQ(world.ranks[0].news, 0);
}

TEST(lifeline, different_counts_are_a_mismatch_on_both_ranks_within_a_beat) {
  test_world world{2};
  world.ranks[0].all_reduce(409600);
  world.ranks[1].all_reduce(409598);
  world.beat();
  for (test_rank& rank : world.ranks) {
    const auto parted = rank.line.peers().at(0).parted;
    ASSERT_TRUE(parted.has_value());
    EXPECT_EQ(parted->kind, mismatch_kind::count);
    EXPECT_EQ(parted->ordinal, 1U);
    EXPECT_EQ(rank.news, 1);
  }
  world.beat();
  EXPECT_EQ(world.ranks[0].news, 1);
}

TEST(lifeline, a_pair_that_does_not_match_is_seen_by_the_pair_only) {
  test_world world{3};
  world.ranks[0].pair(operation_kind::send, 1, 10);
  world.ranks[1].pair(operation_kind::recv, 0, 11);
  world.beat();
  EXPECT_EQ(world.ranks[0].line.peers()[0].parted->kind, mismatch_kind::count);
  EXPECT_EQ(world.ranks[1].line.peers()[0].parted->theirs.kind, operation_kind::send);
  EXPECT_FALSE(world.ranks[2].line.peers()[0].parted.has_value());
  EXPECT_FALSE(world.ranks[0].line.peers()[1].parted.has_value());
}

TEST(lifeline, a_difference_far_back_is_located_by_asking) {
  test_world world{2};
  world.beat();
  world.ranks[0].all_reduce(1);
  world.ranks[1].all_reduce(2);
  for (int each = 0; each < 5000; ++each) {
    world.ranks[0].all_reduce(7);
    world.ranks[1].all_reduce(7);
  }
  world.beat();
  for (test_rank& rank : world.ranks) {
    ASSERT_TRUE(rank.line.peers()[0].parted.has_value());
    EXPECT_EQ(rank.line.peers()[0].parted->kind, mismatch_kind::count);
    EXPECT_EQ(rank.line.peers()[0].parted->ordinal, 1U);
  }
}

TEST(lifeline, a_difference_beyond_one_answer_is_found_by_asking_again) {
  test_world world{2};
  for (int each = 0; each < 6000; ++each) {
    world.ranks[0].all_reduce(each == 5000 ? 1 : 7);
    world.ranks[1].all_reduce(each == 5000 ? 2 : 7);
  }
  for (int beats = 0; beats < 4; ++beats) {
    world.beat();
  }
  ASSERT_TRUE(world.ranks[0].line.peers()[0].parted.has_value());
  EXPECT_EQ(world.ranks[0].line.peers()[0].parted->ordinal, 5001U);
}

TEST(lifeline, a_difference_that_nobody_remembers_is_still_a_mismatch) {
  test_world world{2};
  world.ranks[0].all_reduce(1);
  world.ranks[1].all_reduce(2);
  for (int each = 0; each < 20000; ++each) {
    world.ranks[0].all_reduce(7);
    world.ranks[1].all_reduce(7);
  }
  world.beat();
  ASSERT_TRUE(world.ranks[0].line.peers()[0].parted.has_value());
  EXPECT_EQ(world.ranks[0].line.peers()[0].parted->kind, mismatch_kind::unlocated);
}

TEST(lifeline, without_the_check_nothing_is_compared) {
  test_world world{2, mismatch_check::off};
  world.ranks[0].all_reduce(1);
  world.ranks[1].all_reduce(2);
  world.beat();
  EXPECT_FALSE(world.ranks[0].line.peers()[0].parted.has_value());
  EXPECT_EQ(world.ranks[0].line.peers()[0].collectives_submitted, 1U);
}

TEST(lifeline, a_closed_connection_is_news_at_once) {
  test_world world{3};
  world.network.close(2, "reset by peer");
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(world.ranks[rank].news, 1);
    EXPECT_EQ(world.ranks[rank].line.peers()[1].connection, peer_connection::closed);
    EXPECT_EQ(world.ranks[rank].line.peers()[1].close_reason, "reset by peer");
  }
  world.network.close(2, "again");
  EXPECT_EQ(world.ranks[0].line.peers()[1].close_reason, "reset by peer");
}

TEST(lifeline, a_failure_reaches_all_once) {
  test_world world{3};
  const failure_notice notice{
      .code = errc::timed_out, .origin = 0, .sequence = 4, .text = "late", .peers = {2}};
  world.ranks[0].line.announce_failure(notice);
  world.ranks[0].line.announce_failure(notice);
  EXPECT_EQ(world.network.deliver(), 2U);
  for (const std::size_t rank : {1U, 2U}) {
    const auto failure = world.ranks[rank].line.peers()[0].failure;
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->text, "late");
    EXPECT_EQ(world.ranks[rank].news, 1);
  }
}

TEST(lifeline, who_said_farewell_may_close) {
  test_world world{2};
  world.ranks[1].all_reduce(1);
  world.ranks[1].line.say_farewell();
  world.network.deliver();
  world.network.close(1, "eof");
  const auto peer = world.ranks[0].line.peers()[0];
  EXPECT_EQ(peer.connection, peer_connection::left);
  EXPECT_EQ(peer.collectives_submitted, 1U);  // its last counts came first
}

TEST(lifeline, hears_nothing_after_hanging_up) {
  test_world world{2};
  world.ranks[0].line.hang_up();
  world.ranks[1].line.announce_failure({});
  world.network.deliver();
  EXPECT_EQ(world.ranks[0].news, 0);
}

TEST(lifeline, after_a_failure_there_is_no_farewell) {
  test_world world{2};
  world.ranks[1].line.announce_failure({});
  world.network.drop();
  world.ranks[1].line.say_farewell();
  EXPECT_EQ(world.network.deliver(), 0U);
}

TEST(lifeline, messages_of_another_generation_are_ignored) {
  test_world world{2};
  world.network.send(
      1, 0, encode(2, failure_notice{.origin = 1, .sequence = 1, .text = "old", .peers = {}}));
  world.network.deliver();
  EXPECT_FALSE(world.ranks[0].line.peers()[0].failure.has_value());
}

TEST(lifeline, a_message_that_cannot_be_read_counts_as_closed) {
  test_world world{2};
  world.network.send(1, 0, {std::byte{1}, std::byte{2}});
  world.network.deliver();
  EXPECT_EQ(world.ranks[0].line.peers()[0].connection, peer_connection::closed);
}

TEST(lifeline, silence_is_what_was_not_heard) {
  test_world world{2};
  const time_point start = world.time.now();
  for (int each = 0; each < 30; ++each) {
    world.time.advance(100ms);
    world.ranks[0].line.tick(world.time.now());
  }
  EXPECT_EQ(world.ranks[0].line.peers()[0].last_heard, start);
}

TEST(lifeline, who_stood_still_itself_does_not_blame_the_others) {
  test_world world{2};
  world.beat();
  world.time.advance(10s);  // this process was stopped and goes on
  world.ranks[0].line.tick(world.time.now());
  EXPECT_GE(world.ranks[0].line.peers()[0].last_heard, world.time.now() - 200ms);
}

TEST(lifeline, agrees_when_all_have_issued_the_same) {
  test_world world{3, mismatch_check::strict};
  for (test_rank& rank : world.ranks) {
    rank.all_reduce(5);
  }
  world.beat();
  EXPECT_EQ(world.ranks[0].line.agree(1, deadline::after(0s, world.time)), agreement::agreed);
  world.ranks[0].all_reduce(6);
  EXPECT_EQ(world.ranks[0].line.agree(2, deadline::after(0s, world.time)), agreement::timed_out);
  world.ranks[1].all_reduce(7);
  world.ranks[2].all_reduce(6);
  world.beat();
  EXPECT_EQ(world.ranks[0].line.agree(2, deadline::after(0s, world.time)), agreement::refused);
  EXPECT_EQ(world.ranks[2].line.agree(2, deadline::after(0s, world.time)), agreement::refused);
}

TEST(lifeline, agreement_does_not_wait_for_the_next_beat) {
  fake_network network{2};
  manual_time time;
  test_rank zero{network, 0, 2, time, mismatch_check::strict};
  test_rank one{network, 1, 2, time, mismatch_check::strict};
  std::atomic<bool> is_over{false};
  std::thread carrier{[&] {
    while (!is_over) {
      network.deliver();
      std::this_thread::yield();
    }
  }};
  const auto work = [](test_rank& rank) {
    for (std::uint64_t each = 1; each <= 200; ++each) {
      rank.all_reduce(each);
      ASSERT_EQ(rank.line.agree(each, deadline::after(20s)), agreement::agreed);
    }
  };
  std::thread peer{[&] { work(one); }};
  work(zero);
  peer.join();
  is_over = true;
  carrier.join();
}

}  // namespace
}  // namespace spark_comm
