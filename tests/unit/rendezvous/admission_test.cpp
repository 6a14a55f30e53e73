// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/rendezvous/detail/admission.hpp>
#include <spark_comm/rendezvous/detail/backoff.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

using ::testing::HasSubstr;

nonce process(int number) {
  nonce out{};
  out[0] = static_cast<std::byte>(number);
  return out;
}

/// Rank 1 of 3 is seated, as process 1; everybody has the same version and a device of its own.
seating house() {
  seating table{.world_size = 3,
                .facts = {{"version", "1"},
                          {"file", "x", fact_rule::reported},
                          {"device", "d0", fact_rule::distinct}},
                .seats = std::vector<std::optional<seat>>(3)};
  table.seats[1] = seat{.process = process(1), .facts = {{"device", "d1", fact_rule::distinct}}};
  return table;
}

hello_message guest() {
  return {.version = protocol_version,
          .world_size = 3,
          .rank = 2,
          .generation = 4,
          .process = process(2),
          .listener = "127.0.0.1:1",
          .facts = {{"version", "1"},
                    {"file", "x", fact_rule::reported},
                    {"device", "d2", fact_rule::distinct}}};
}

TEST(admission, decides_by_the_first_thing_that_does_not_fit) {
  struct row {
    std::string name;
    std::function<void(hello_message&)> change;
    verdict what;
    std::string reason;
  };

  const std::vector<row> rows = {
      {"fits", [](hello_message&) {}, verdict::accept, ""},
      {"version",
       [](hello_message& g) { g.version = 9; },
       verdict::clash,
       "the guest speaks 9, rank 0 speaks 2"},
      {"world",
       [](hello_message& g) { g.world_size = 2; },
       verdict::refuse,
       "rank 2 was given 2, rank 0 was given 3"},
      {"second head",
       [](hello_message& g) { g.rank = 0; },
       verdict::refuse,
       "rank 0 cannot join rank 0"},
      {"negative", [](hello_message& g) { g.rank = -1; }, verdict::refuse, "rank -1 cannot"},
      {"beyond", [](hello_message& g) { g.rank = 3; }, verdict::refuse, "rank 3 cannot"},
      {"old", [](hello_message& g) { g.generation = 3; }, verdict::accept, ""},
      {"ahead", [](hello_message& g) { g.generation = 5; }, verdict::accept, ""},
      {"survivors alone",
       [](hello_message& g) { g.who = membership::survivors; },
       verdict::refuse,
       "rank 2 meets the survivors alone, rank 0 meets the whole world"},
      {"equal fact",
       [](hello_message& g) { g.facts[0].value = "2"; },
       verdict::clash,
       "version differs: rank 2 has 2, rank 0 has 1"},
      {"no fact",
       [](hello_message& g) { g.facts.clear(); },
       verdict::clash,
       "version differs: rank 2 has (not given), rank 0 has 1"},
      {"own fact",
       [](hello_message& g) { g.facts.push_back({"extra", "1"}); },
       verdict::clash,
       "extra differs: rank 2 has 1, rank 0 has (not given)"},
      {"device of 0",
       [](hello_message& g) { g.facts[2].value = "d0"; },
       verdict::clash,
       "device d0 of rank 2 is that of rank 0 as well"},
      {"device of 1",
       [](hello_message& g) { g.facts[2].value = "d1"; },
       verdict::clash,
       "device d1 of rank 2 is that of rank 1 as well"},
      {"taken", [](hello_message& g) { g.rank = 1; }, verdict::ask_holder, "rank 1 already taken"},
      {"again", [](hello_message& g) { g.rank = 1, g.process = process(1); }, verdict::replace, ""},
      {"own device again",
       [](hello_message& g) {
         g.rank = 1;
         g.process = process(1);
         g.facts[2].value = "d1";
       },
       verdict::replace,
       ""},
  };
  for (const row& each : rows) {
    hello_message hello = guest();
    each.change(hello);
    const admission decision = admit(house(), hello);
    EXPECT_EQ(decision.what, each.what) << each.name;
    EXPECT_THAT(decision.reason, HasSubstr(each.reason)) << each.name;
    EXPECT_TRUE(decision.remarks.empty()) << each.name;
  }
}

TEST(admission, the_host_need_not_be_rank_0) {
  seating table = house();
  table.host = 2;
  hello_message hello = guest();
  EXPECT_THAT(admit(table, hello).reason, HasSubstr("rank 2 cannot join rank 2"));
  hello.rank = 0;
  EXPECT_EQ(admit(table, hello).what, verdict::accept);
  hello.facts[2].value = "d0";
  EXPECT_THAT(admit(table, hello).reason, HasSubstr("is that of rank 2 as well"));
}

TEST(admission, a_reported_difference_is_a_remark) {
  hello_message hello = guest();
  hello.facts[1].value = "y";
  const admission decision = admit(house(), hello);
  EXPECT_EQ(decision.what, verdict::accept);
  EXPECT_EQ(decision.remarks, std::vector<std::string>{"file differs: rank 2 has y, rank 0 has x"});
  hello.facts[1].value = "";
  hello.facts[1].note = "/b.so";
  EXPECT_EQ(admit(house(), hello).remarks,
            std::vector<std::string>{"file differs: rank 2 has none (/b.so), rank 0 has x"});
}

TEST(admission, a_note_is_not_compared) {
  hello_message hello = guest();
  hello.facts[0].note = hello.facts[1].note = "elsewhere";
  const admission decision = admit(house(), hello);
  EXPECT_EQ(decision.what, verdict::accept);
  EXPECT_TRUE(decision.remarks.empty());
}

TEST(backoff, grows_from_the_shortest_pause_to_the_longest) {
  duration pause{};
  duration previous{};
  for (int i = 0; i < 30; ++i) {
    pause = next_pause(pause);
    EXPECT_GE(pause, shortest_pause);
    EXPECT_LE(pause, longest_pause);
    EXPECT_GE(pause, previous);
    previous = pause;
  }
  EXPECT_EQ(pause, longest_pause);
  EXPECT_EQ(next_pause(duration::zero()), shortest_pause);
}

}  // namespace
}  // namespace spark_comm::rendezvous::detail
