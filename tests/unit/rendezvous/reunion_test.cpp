// SPDX-License-Identifier: AGPL-3.0-only
// Ranks that have lost one of theirs meet again: with a new one in its place, or alone.
#include "unit/rendezvous/ranks.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/detail/held_port.hpp>
#include <spark_comm/rendezvous/secret.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using ::testing::HasSubstr;

/// What a rank keeps of a session.
struct left_over {
  world place;
  hello mine;
  reunion known;
};

/// A world that has met and is no more: each rank's port is open, and its session is not.
std::vector<left_over> parted_world(int size) {
  head first{size};
  std::vector<std::future<outcome>> others;
  for (int rank = 1; rank < size; ++rank) {
    others.push_back(worker(first.where(), rank, size));
  }
  std::vector<outcome> all;
  all.push_back(first.result());
  for (auto& each : others) {
    all.push_back(each.get());
  }
  std::vector<left_over> out;
  for (int rank = 0; rank < size; ++rank) {
    const auto& met = all[static_cast<std::size_t>(rank)].met;
    out.push_back({.place = {.address = first.where(), .rank = rank, .world_size = size},
                   .mine = {.generation = met->generation() + 1, .facts = {}},
                   .known = {.listeners = met->listener_addresses(), .port = met->take_port()}});
  }
  return out;
}

std::future<outcome> again(const left_over& rank,
                           membership who = membership::whole_world,
                           duration limit = 10s) {
  meeting_options options = quiet();
  options.again = rank.known;
  options.again->who = who;
  return std::async(std::launch::async,
                    [=] { return try_meet(rank.place, rank.mine, limit, options); });
}

/// A process that was in no meeting before.
std::future<outcome> replacement(const left_over& lost, duration limit = 10s) {
  meeting_options options = quiet();
  options.way_in = entry::replacing;
  return std::async(std::launch::async,
                    [=] { return try_meet(lost.place, hello{}, limit, options); });
}

/// The rank's process is no more: nobody holds its port.
void lose(left_over& rank) {
  rank.known.port.reset();
}

void expect_met(const outcome& out, int rank, int size, std::uint64_t generation) {
  ASSERT_TRUE(out.is_met()) << out.text();
  EXPECT_EQ(out.met->rank(), rank);
  EXPECT_EQ(out.met->world_size(), size);
  EXPECT_EQ(out.met->generation(), generation);
}

/// The met ranks can all hear each other.
void expect_in_touch(const std::vector<outcome*>& all) {
  std::vector<std::future<std::size_t>> heard;
  for (outcome* each : all) {
    heard.push_back(std::async(std::launch::async, [each] {
      return each->met->all_gather(bytes_of("here"), deadline::after(5s)).size();
    }));
  }
  for (auto& each : heard) {
    EXPECT_EQ(each.get(), all.size());
  }
}

TEST(reunion, takes_a_new_process_in_the_place_of_any_lost_rank) {
  for (const std::size_t lost : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    SCOPED_TRACE(lost);
    std::vector<left_over> ranks = parted_world(3);
    lose(ranks[lost]);
    std::vector<std::future<outcome>> coming;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      coming.push_back(rank == lost ? replacement(ranks[rank]) : again(ranks[rank]));
    }
    std::vector<outcome> all;
    for (auto& each : coming) {
      all.push_back(each.get());
    }
    for (int rank = 0; rank < 3; ++rank) {
      expect_met(all[static_cast<std::size_t>(rank)], rank, 3, 2);
    }
    expect_in_touch({&all[0], &all[1], &all[2]});
  }
}

TEST(reunion, finds_the_next_when_several_of_the_lowest_are_lost) {
  std::vector<left_over> ranks = parted_world(4);
  lose(ranks[0]);
  lose(ranks[1]);
  auto two = again(ranks[2]);
  auto three = again(ranks[3]);
  auto zero = replacement(ranks[0]);
  auto one = replacement(ranks[1]);
  expect_met(zero.get(), 0, 4, 2);
  expect_met(one.get(), 1, 4, 2);
  expect_met(two.get(), 2, 4, 2);
  expect_met(three.get(), 3, 4, 2);
}

TEST(reunion, of_survivors_numbers_them_anew_in_their_old_order) {
  for (const std::size_t lost : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    SCOPED_TRACE(lost);
    std::vector<left_over> ranks = parted_world(3);
    lose(ranks[lost]);
    std::vector<std::future<outcome>> coming;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      if (rank != lost) {
        coming.push_back(again(ranks[rank], membership::survivors));
      }
    }
    outcome first = coming[0].get();
    outcome second = coming[1].get();
    expect_met(first, 0, 2, 2);
    expect_met(second, 1, 2, 2);
    expect_in_touch({&first, &second});
    EXPECT_EQ(first.met->listener_addresses(), second.met->listener_addresses());
  }
}

TEST(reunion, of_one_survivor_is_a_world_of_one) {
  std::vector<left_over> ranks = parted_world(3);
  lose(ranks[0]);
  lose(ranks[2]);
  const outcome out = again(ranks[1], membership::survivors).get();
  expect_met(out, 0, 1, 2);
  EXPECT_LT(out.took, 2s);
}

TEST(reunion, waits_for_a_survivor_that_has_not_called_yet_and_names_it) {
  std::vector<left_over> ranks = parted_world(3);
  lose(ranks[2]);
  const outcome out = again(ranks[0], membership::survivors, 400ms).get();
  EXPECT_EQ(out.failure.value().kind(), errc::timed_out) << out.text();
  EXPECT_EQ(out.failure->context().peers, std::vector{1});
}

TEST(reunion, of_survivors_lets_no_new_process_in_and_goes_on) {
  std::vector<left_over> ranks = parted_world(3);
  lose(ranks[2]);
  auto zero = again(ranks[0], membership::survivors);
  const outcome refused = replacement(ranks[2]).get();
  EXPECT_EQ(refused.failure.value().kind(), errc::mismatch) << refused.text();
  EXPECT_THAT(refused.text(), HasSubstr("rank 0 meets the survivors alone"));
  expect_met(again(ranks[1], membership::survivors).get(), 1, 2, 2);
  expect_met(zero.get(), 0, 2, 2);
}

TEST(reunion, a_second_process_for_the_same_place_is_refused) {
  std::vector<left_over> ranks = parted_world(3);
  lose(ranks[1]);
  auto zero = again(ranks[0]);
  auto one = replacement(ranks[1]);
  const outcome twice = [&] {
    auto second = replacement(ranks[1]);
    while (true) {  // either of the two may be the first
      if (one.wait_for(1ms) == std::future_status::ready) {
        return std::exchange(one, std::move(second)).get();
      }
      if (second.wait_for(1ms) == std::future_status::ready) {
        return second.get();
      }
    }
  }();
  EXPECT_THAT(twice.text(), HasSubstr("rank 1 already taken"));
  expect_met(again(ranks[2]).get(), 2, 3, 2);
  expect_met(one.get(), 1, 3, 2);
  expect_met(zero.get(), 0, 3, 2);
}

class deaf final : public session_listener {
 public:
  void on_message(int /*peer*/, std::span<const std::byte> /*message*/) noexcept override {}

  void on_closed(int /*peer*/, const std::string& /*reason*/) noexcept override {}
};

TEST(reunion, a_rank_that_was_left_behind_is_told_which_generation_the_others_are_in) {
  std::vector<left_over> ranks = parted_world(2);
  auto zero = again(ranks[0]);
  outcome newer = replacement(ranks[1]).get();
  outcome host = zero.get();
  ASSERT_TRUE(newer.is_met()) << newer.text();
  ASSERT_TRUE(host.is_met()) << host.text();
  deaf nobody;
  host.met->start(nobody);
  newer.met->start(nobody);
  const outcome late = again(ranks[1], membership::whole_world, 300ms).get();
  EXPECT_EQ(late.failure.value().kind(), errc::timed_out) << late.text();
  EXPECT_THAT(late.text(),
              HasSubstr("rank 0 is in generation 2, of 2 ranks, and not meeting anybody"));
  host.met->stop();
  newer.met->stop();
}

TEST(reunion, of_a_head_that_listened_for_both_families) {
  meeting_options options = quiet();
  options.key = secret::from_text("sixteen bytes at least");
  head first{2, 10s, {}, "[::]:0", options};
  const std::string at = "127.0.0.1:" + std::to_string(parse_address(first.where()).port);
  auto other = worker(at, 1, 2, 10s, {}, options);
  const outcome zero = first.result();
  const outcome one = other.get();
  ASSERT_TRUE(zero.is_met()) << zero.text();
  ASSERT_TRUE(one.is_met()) << one.text();
  const auto meet_again = [&](const outcome& out, const std::string& address) {
    meeting_options anew = options;
    anew.again = {.listeners = out.met->listener_addresses(), .port = out.met->take_port()};
    const world place{.address = address, .rank = out.met->rank(), .world_size = 2};
    return std::async(std::launch::async,
                      [=] { return try_meet(place, {.generation = 2, .facts = {}}, 5s, anew); });
  };
  auto zero_again = meet_again(zero, first.where());
  auto one_again = meet_again(one, at);
  expect_met(zero_again.get(), 0, 2, 2);
  expect_met(one_again.get(), 1, 2, 2);
}

TEST(reunion, needs_what_a_session_of_the_same_world_left) {
  meeting_options options = quiet();
  options.again = reunion{};
  const outcome out =
      try_meet({.address = "127.0.0.1:1", .rank = 0, .world_size = 2}, {}, 1s, options);
  EXPECT_EQ(out.failure.value().kind(), errc::invalid_argument) << out.text();
  options.again.reset();
  options.way_in = entry::replacing;
  const outcome portless =
      try_meet({.address = "127.0.0.1:0", .rank = 0, .world_size = 2}, {}, 1s, options);
  EXPECT_EQ(portless.failure.value().kind(), errc::invalid_argument) << portless.text();
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
