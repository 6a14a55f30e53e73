// SPDX-License-Identifier: AGPL-3.0-only
#include "fuzz/wire_property.hpp"

#include <spark_comm/rendezvous/detail/wire.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::detail {
namespace {

hello_message sample_hello() {
  hello_message hello{.version = protocol_version,
                      .world_size = 2,
                      .rank = 1,
                      .generation = 0x1122334455667788U,
                      .process = {},
                      .listener = "[fe80::1%eth0]:4000",
                      .facts = {{"version", "2.28.9", fact_rule::equal},
                                {"device", std::string("a\0b", 3), fact_rule::distinct}}};
  hello.process.fill(std::byte{0xfe});
  return hello;
}

TEST(wire, a_header_is_little_endian) {
  const auto raw = encode_header({.body_bytes = 0x01020304, .kind = frame_kind::roster});
  EXPECT_EQ(raw,
            (std::array{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}, std::byte{4}}));
  const auto back = decode_header(raw);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->body_bytes, 0x01020304U);
  EXPECT_EQ(back->kind, frame_kind::roster);
}

TEST(wire, an_unknown_kind_is_no_header) {
  for (const int kind : {0, 14, 15, 19, 34, 255}) {
    std::array<std::byte, frame_header_bytes> raw{};
    raw[4] = static_cast<std::byte>(kind);
    EXPECT_FALSE(decode_header(raw)) << kind;
  }
}

TEST(wire, a_hello_comes_back_whole) {
  const hello_message hello = sample_hello();
  const auto back = decode_hello(encode(hello));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->version, hello.version);
  EXPECT_EQ(back->world_size, 2);
  EXPECT_EQ(back->rank, 1);
  EXPECT_EQ(back->generation, hello.generation);
  EXPECT_EQ(back->process, hello.process);
  EXPECT_EQ(back->listener, hello.listener);
  ASSERT_EQ(back->facts.size(), 2U);
  EXPECT_EQ(back->facts[1].value, hello.facts[1].value);
  EXPECT_EQ(back->facts[1].rule, fact_rule::distinct);
}

TEST(wire, negative_numbers_survive) {
  hello_message hello = sample_hello();
  hello.rank = -1;
  hello.world_size = -7;
  const auto back = decode_hello(encode(hello));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->rank, -1);
  EXPECT_EQ(back->world_size, -7);
}

TEST(wire, a_hello_of_another_version_still_tells_its_version) {
  hello_message hello = sample_hello();
  hello.version = 77;
  bytes raw = encode(hello);
  raw.resize(raw.size() / 2);
  const auto back = decode_hello(raw);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->version, 77U);
}

TEST(wire, the_other_messages_come_back_whole) {
  EXPECT_EQ(decode_refusal(encode(refusal_message{"no"}))->reason, "no");
  EXPECT_EQ(decode_waiting(encode(waiting_message{{2, 5}}))->missing, (std::vector{2, 5}));
  EXPECT_EQ(decode_round(encode(round_message{9}))->round, 9U);
  roster_message roster{.round = 3,
                        .generation = 5,
                        .host = 1,
                        .secret = {},
                        .members = {0, 2},
                        .listeners = {"", "127.0.0.1:1"}};
  roster.secret.fill(std::byte{1});
  const auto back = decode_roster(encode(roster));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->round, 3U);
  EXPECT_EQ(back->secret, roster.secret);
  EXPECT_EQ(back->generation, 5U);
  EXPECT_EQ(back->host, 1);
  EXPECT_EQ(back->members, roster.members);
  EXPECT_EQ(back->listeners, roster.listeners);
  const auto mesh =
      decode_mesh_hello(encode(mesh_hello_message{.rank = 4, .secret = roster.secret}));
  ASSERT_TRUE(mesh);
  EXPECT_EQ(mesh->rank, 4);
  EXPECT_EQ(mesh->secret, roster.secret);
  const bytes payload(3, std::byte{8});
  const bytes step = encode(step_message{.step = 6, .payload = payload});
  EXPECT_EQ(decode_step(step)->step, 6U);
  EXPECT_EQ(decode_step(step)->payload.size(), 3U);
}

TEST(wire, every_shorter_or_longer_body_is_refused) {
  const bytes whole = encode(sample_hello());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto back = decode_hello(std::span{whole}.first(size));
    EXPECT_FALSE(back) << size;
  }
  bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_hello(longer));
  EXPECT_FALSE(decode_round(bytes(3)));
  EXPECT_FALSE(decode_round(bytes(5)));
  EXPECT_FALSE(decode_step(bytes(7)));
}

TEST(wire, counts_beyond_the_bounds_are_refused) {
  bytes waiting = encode(waiting_message{{1}});
  waiting[3] = std::byte{0x7f};
  EXPECT_FALSE(decode_waiting(waiting));
  hello_message hello = sample_hello();
  hello.facts.clear();
  bytes raw = encode(hello);
  raw.back() = std::byte{0x40};  // the highest byte of the number of facts
  EXPECT_FALSE(decode_hello(raw));
}

TEST(wire, an_unknown_fact_rule_is_refused) {
  hello_message hello = sample_hello();
  bytes raw = encode(hello);
  raw.back() = std::byte{3};
  EXPECT_FALSE(decode_hello(raw));
}

TEST(wire, what_is_too_long_is_cut_so_that_it_can_be_read) {
  EXPECT_EQ(decode_refusal(encode(refusal_message{std::string(10000, 'x')}))->reason.size(), 4096U);
  hello_message hello = sample_hello();
  hello.facts.assign(100, {"name", std::string(5000, 'v')});
  const auto back = decode_hello(encode(hello));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->facts.size(), 32U);
  EXPECT_LT(encode(hello).size(), max_handshake_bytes);
}

TEST(wire, whatever_is_accepted_is_what_the_encoder_writes) {
  std::mt19937 random{20240611};  // NOLINT(cert-msc51-cpp): the same bytes in every run
  const auto pick = [&random](std::size_t below) {
    return static_cast<std::size_t>(random()) % below;
  };
  const roster_message roster{.round = 3,
                              .generation = 2,
                              .secret = {},
                              .members = {0, 1, 2},
                              .listeners = {"", "127.0.0.1:1", "[::1]:2"}};
  const std::vector<bytes> seeds = {
      encode(sample_hello()),
      encode(refusal_message{"world size differs"}),
      encode(waiting_message{{1, 2, 3}}),
      encode(roster),
      encode(round_message{7}),
      encode(mesh_hello_message{.rank = 1, .secret = {}}),
      encode(step_message{.step = 1, .payload = {}}),
  };
  for (int i = 0; i < 100'000; ++i) {
    bytes mutant = seeds[pick(seeds.size())];
    for (std::size_t change = pick(4); change > 0 && !mutant.empty(); --change) {
      mutant[pick(mutant.size())] = static_cast<std::byte>(pick(3) == 0 ? 0xff : pick(256));
    }
    if (pick(3) == 0) {
      mutant.resize(pick(mutant.size() + 8));
    }
    ASSERT_TRUE(decoders_hold(mutant)) << i;
  }
}

}  // namespace
}  // namespace spark_comm::rendezvous::detail
