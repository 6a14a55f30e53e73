// SPDX-License-Identifier: AGPL-3.0-only
#include "unit/rendezvous/ranks.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using ::testing::HasSubstr;

TEST(meeting, a_world_of_one_opens_no_socket) {
  auto alone = session::meet({.address = "", .rank = 0, .world_size = 1}, {}, deadline::after(0s));
  EXPECT_EQ(alone->world_size(), 1);
  EXPECT_EQ(text_of(alone->all_gather(bytes_of("me"), deadline::after(0s)).at(0)), "me");
  EXPECT_EQ(text_of(alone->broadcast(bytes_of("id"), deadline::after(0s))), "id");
}

TEST(meeting, brings_worlds_of_several_sizes_together) {
  for (const int size : {2, 3, 4, 8}) {
    const auto all = meet_all(size);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(all[static_cast<std::size_t>(rank)]->rank(), rank);
      EXPECT_EQ(all[static_cast<std::size_t>(rank)]->world_size(), size);
      EXPECT_EQ(all[static_cast<std::size_t>(rank)]->listener_addresses(),
                all.front()->listener_addresses());
    }
  }
}

TEST(meeting, an_impossible_place_is_refused_at_once) {
  for (const world& place : {world{"127.0.0.1:1", 2, 2},
                             world{"127.0.0.1:1", -1, 2},
                             world{"::1:29500", 0, 2},
                             world{"127.0.0.1:0", 1, 2}}) {
    const outcome out = try_meet(place, {}, 10s);
    EXPECT_EQ(out.failure.value().kind(), errc::invalid_argument) << out.text();
    EXPECT_LT(out.took, 1s);
  }
}

TEST(meeting, a_wrong_world_size_is_refused_and_the_head_waits_on) {
  head first{2, 1500ms};
  const outcome wrong = worker(first.where(), 1, 3).get();
  EXPECT_EQ(wrong.failure.value().kind(), errc::mismatch) << wrong.text();
  EXPECT_THAT(wrong.text(), HasSubstr("rank 1 was given 3, rank 0 was given 2"));
  EXPECT_LT(wrong.took, 1s);
  const outcome out = first.result();
  EXPECT_EQ(out.failure.value().kind(), errc::timed_out) << out.text();
  EXPECT_EQ(out.failure->context().peers, std::vector{1});
  EXPECT_THAT(out.text(), HasSubstr("refused 1 time: world size differs"));
  EXPECT_GE(out.took, 1500ms);
  EXPECT_LT(out.took, 2500ms);
}

TEST(meeting, a_rank_claimed_twice_stays_with_the_first) {
  head first{3};
  auto x = worker(first.where(), 1, 3);
  // Y may come first; whoever does has the place, and the other is told.
  auto y = worker(first.where(), 1, 3);
  const auto refused = [&] {
    while (true) {
      if (x.wait_for(1ms) == std::future_status::ready) {
        return x.get();
      }
      if (y.wait_for(1ms) == std::future_status::ready) {
        return y.get();
      }
    }
  }();
  EXPECT_EQ(refused.failure.value().kind(), errc::mismatch) << refused.text();
  EXPECT_THAT(refused.text(), HasSubstr("rank 1 already taken"));
  EXPECT_LT(refused.took, 3s);
  auto z = worker(first.where(), 2, 3);
  EXPECT_TRUE(z.get().is_met());
  EXPECT_TRUE((x.valid() ? x : y).get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(meeting, another_value_of_an_equal_fact_ends_it_on_both_sides) {
  head first{2, 10s, {.facts = {{"NCCL version", "2.28.9"}}}};
  const outcome other =
      worker(first.where(), 1, 2, 10s, {.facts = {{"NCCL version", "2.30.7"}}}).get();
  const outcome own = first.result();
  for (const outcome* each : {&other, &own}) {
    const outcome& out = *each;
    EXPECT_EQ(out.failure.value().kind(), errc::mismatch) << out.text();
    EXPECT_THAT(out.text(),
                HasSubstr("NCCL version differs: rank 1 has 2.30.7, rank 0 has 2.28.9"));
    EXPECT_LT(out.took, 1s);
  }
}

TEST(meeting, a_reported_fact_is_said_once_on_both_sides_and_does_no_harm) {
  std::vector<std::string> head_said;
  std::vector<std::string> worker_said;
  const auto keep_in = [](std::vector<std::string>& said) {
    meeting_options options;
    options.log = diagnostics{[&said](const diagnostic& each) { said.push_back(each.text); }};
    return options;
  };
  const hello a{.facts = {{"build", "1", fact_rule::reported, "/a.so"}}};
  const hello b{.facts = {{"build", "2", fact_rule::reported, "/b.so"}}};
  head first{2, 10s, a, "127.0.0.1:0", keep_in(head_said)};
  auto other = worker(first.where(), 1, 2, 10s, b, keep_in(worker_said));
  EXPECT_TRUE(other.get().is_met());
  EXPECT_TRUE(first.result().is_met());
  EXPECT_EQ(head_said,
            std::vector<std::string>{"build differs: rank 1 has 2 (/b.so), rank 0 has 1 (/a.so)"});
  EXPECT_EQ(worker_said, head_said);
}

TEST(meeting, the_same_distinct_fact_on_two_ranks_is_a_mismatch_on_both) {
  const hello same{.facts = {{"device", "GPU-1", fact_rule::distinct}}};
  head first{2, 10s, same};
  const outcome twin = worker(first.where(), 1, 2, 10s, same).get();
  const outcome zero = first.result();
  for (const outcome* out : {&zero, &twin}) {
    EXPECT_EQ(out->failure.value().kind(), errc::mismatch) << out->text();
    EXPECT_THAT(out->text(), HasSubstr("device GPU-1 of rank 1 is that of rank 0 as well"));
    EXPECT_LT(out->took, 1s);
  }
}

TEST(meeting, ranks_of_different_generations_meet_in_the_highest) {
  head first{3, 10s, {.generation = 2, .facts = {}}};
  auto late = worker(first.where(), 1, 3, 10s, {.generation = 1, .facts = {}});
  auto early = worker(first.where(), 2, 3, 10s, {.generation = 5, .facts = {}});
  for (const outcome& out : {first.result(), late.get(), early.get()}) {
    ASSERT_TRUE(out.is_met()) << out.text();
    EXPECT_EQ(out.met->generation(), 5U);
  }
}

TEST(meeting, a_missing_rank_is_named_on_all_others_and_a_fresh_one_succeeds) {
  head first{3, 1s};
  const std::string where = first.where();
  const outcome one = worker(where, 1, 3, 1s).get();
  const outcome zero = first.result();
  for (const outcome* out : {&zero, &one}) {
    EXPECT_EQ(out->failure.value().kind(), errc::timed_out) << out->text();
    EXPECT_EQ(out->failure->context().peers, std::vector{2}) << out->text();
    EXPECT_THAT(out->text(), HasSubstr("rank 2"));
    EXPECT_GE(out->took, 1s);
    EXPECT_LT(out->took, 2s);
  }
  head again{3, 10s, {}, where};
  auto second = worker(where, 1, 3);
  auto third = worker(where, 2, 3);
  EXPECT_TRUE(second.get().is_met());
  EXPECT_TRUE(third.get().is_met());
  EXPECT_TRUE(again.result().is_met());
}

TEST(meeting, a_port_in_use_is_said_at_once) {
  head first{2, 1s};
  const outcome second = try_meet({.address = first.where(), .rank = 0, .world_size = 2}, {}, 10s);
  EXPECT_EQ(second.failure.value().kind(), errc::system_failed) << second.text();
  EXPECT_EQ(second.failure->native().number, EADDRINUSE);
  EXPECT_THAT(second.text(), HasSubstr(first.where()));
  EXPECT_LT(second.took, 1s);
}

TEST(meeting, a_worker_without_a_head_times_out_with_the_obstacle) {
  const outcome alone = worker("127.0.0.1:1", 1, 2, 300ms).get();
  EXPECT_EQ(alone.failure.value().kind(), errc::timed_out);
  EXPECT_THAT(alone.text(), HasSubstr("could not connect to 127.0.0.1:1: Connection refused"));
  EXPECT_THAT(alone.text(), HasSubstr("rank 1/2"));
  EXPECT_GE(alone.took, 300ms);
}

TEST(meeting, more_than_a_mesh_is_not_supported) {
  const outcome out = try_meet({.address = "127.0.0.1:0", .rank = 0, .world_size = 65}, {}, 10s);
  EXPECT_EQ(out.failure.value().kind(), errc::not_supported);
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
