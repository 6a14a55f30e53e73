// SPDX-License-Identifier: AGPL-3.0-only
// Peers that are no ranks, or behave like none.
#include "unit/rendezvous/ranks.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/detail/wire.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace spark_comm::rendezvous::testing {
namespace {

using detail::frame_kind;
using ::testing::HasSubstr;

TEST(stranger, probes_take_nobodys_place_and_are_told_nothing) {
  head first{2};
  for (int i = 0; i < 50; ++i) {
    connect_to(first.where()).close();
  }
  const raw_socket half_closed = connect_to(first.where());
  half_closed.stop_sending();
  const raw_socket silent = connect_to(first.where());
  EXPECT_TRUE(worker(first.where(), 1, 2).get().is_met());
  const outcome out = first.result();
  EXPECT_TRUE(out.is_met()) << out.text();
  EXPECT_LT(out.took, 1s);
  EXPECT_TRUE(half_closed.read(1000).empty());
  EXPECT_TRUE(silent.read(1000).empty());
}

TEST(stranger, other_protocols_are_closed_without_an_answer) {
  head first{2};
  const bytes huge = [] {
    const auto raw = detail::encode_header({.body_bytes = 0xffffffff, .kind = frame_kind::hello});
    return bytes(raw.begin(), raw.end());
  }();
  const bytes zeros(4096);
  const bytes ones(4096, std::byte{0xff});
  for (const std::string& text : {std::string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
                                  std::string{"\x16\x03", 2},
                                  text_of(huge),
                                  text_of(zeros),
                                  text_of(ones)}) {
    const raw_socket guest = connect_to(first.where());
    guest.send(text);
    guest.stop_sending();
    EXPECT_TRUE(guest.read(1000).empty());
  }
  EXPECT_TRUE(worker(first.where(), 1, 2).get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(stranger, a_hello_cut_anywhere_is_no_hello) {
  head first{2};
  const bytes whole = raw_hello(1, 2);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{12}, whole.size() - 1}) {
    const raw_socket guest = connect_to(first.where());
    guest.send_frame(frame_kind::hello, std::span{whole}.first(size));
    guest.stop_sending();
    EXPECT_TRUE(guest.read(1000).empty()) << size;
  }
  EXPECT_TRUE(worker(first.where(), 1, 2).get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(stranger, a_flood_of_silent_connections_does_not_keep_the_right_rank_out) {
  head first{2};
  std::vector<raw_socket> flood;
  for (int i = 0; i < 300; ++i) {
    flood.push_back(connect_to(first.where()));
  }
  const outcome right = worker(first.where(), 1, 2).get();
  EXPECT_TRUE(right.is_met()) << right.text();
  EXPECT_LT(right.took, 2s);
  EXPECT_TRUE(first.result().is_met());
}

TEST(stranger, another_protocol_version_ends_it_on_both_sides_with_both_versions) {
  head first{2};
  raw_socket guest = connect_to(first.where());
  guest.send_frame(frame_kind::hello, raw_hello(1, 2, 9));
  const auto refusal = guest.read_frame(frame_kind::refusal);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(detail::decode_refusal(*refusal)->reason, HasSubstr("speaks 9, rank 0 speaks 2"));
  guest.close();
  const outcome out = first.result();
  EXPECT_EQ(out.failure.value().kind(), errc::mismatch) << out.text();
  EXPECT_LT(out.took, 1s);
}

TEST(stranger, a_worker_lost_before_the_commit_frees_its_place) {
  head first{2};
  for (const bool waits_for_roster : {false, true}) {
    const raw_socket guest = connect_to(first.where());
    guest.send_frame(frame_kind::hello, raw_hello(1, 2));
    EXPECT_TRUE(guest.read_frame(waits_for_roster ? frame_kind::roster : frame_kind::waiting));
  }
  EXPECT_TRUE(worker(first.where(), 1, 2).get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(stranger, a_holder_that_no_longer_answers_loses_its_place) {
  head first{3};
  const raw_socket silent = connect_to(first.where());
  silent.send_frame(frame_kind::hello, raw_hello(1, 3));
  EXPECT_TRUE(silent.read_frame(frame_kind::waiting));
  auto right = worker(first.where(), 1, 3);
  auto other = worker(first.where(), 2, 3);
  const outcome out = right.get();
  EXPECT_TRUE(out.is_met()) << out.text();
  EXPECT_LT(out.took, 3s);
  EXPECT_TRUE(other.get().is_met());
  EXPECT_TRUE(first.result().is_met());
}

TEST(stranger, a_refusal_reaches_the_caller_in_the_heads_words) {
  const raw_listener listener;
  auto guest = worker(listener.where(), 1, 2);
  const raw_socket line = listener.accept();
  EXPECT_TRUE(line.read_frame(frame_kind::hello));
  line.send_frame(frame_kind::refusal, encode(detail::refusal_message{.reason = "not today"}));
  const outcome out = guest.get();
  EXPECT_EQ(out.failure.value().kind(), errc::mismatch);
  EXPECT_THAT(out.text(), HasSubstr("not today"));
  EXPECT_LT(out.took, 1s);
}

TEST(stranger, a_head_that_closes_inside_a_frame_is_lost_at_once) {
  const raw_listener listener;
  auto guest = worker(listener.where(), 1, 2);
  raw_socket line = listener.accept();
  EXPECT_TRUE(line.read_frame(frame_kind::hello));
  line.send(detail::encode_header({.body_bytes = 100, .kind = frame_kind::roster}));
  line.send(bytes(40));
  line.close();
  const outcome out = guest.get();
  EXPECT_EQ(out.failure.value().kind(), errc::peer_lost) << out.text();
  EXPECT_THAT(out.text(), HasSubstr("closed after 40 of 100 bytes"));
  EXPECT_LT(out.took, 1s);
}

TEST(stranger, a_head_that_talks_nonsense_is_left_until_the_deadline) {
  const raw_listener listener;
  auto guest = worker(listener.where(), 1, 2, 400ms);
  {
    const raw_socket line = listener.accept();
    line.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    EXPECT_TRUE(line.read_frame(frame_kind::hello));
  }
  const outcome out = guest.get();
  EXPECT_EQ(out.failure.value().kind(), errc::timed_out) << out.text();
  EXPECT_THAT(out.text(), HasSubstr("handshake was not answered"));
}

TEST(stranger, an_identifier_cut_short_is_not_padded) {
  const raw_listener listener;
  auto guest = worker(listener.where(), 1, 2);
  raw_socket line = listener.accept();
  EXPECT_TRUE(line.read_frame(frame_kind::hello));
  line.send_frame(frame_kind::roster,
                  encode(detail::roster_message{.round = 1,
                                                .generation = 1,
                                                .secret = {},
                                                .members = {0, 1},
                                                .listeners = {"127.0.0.1:1", "127.0.0.1:1"}}));
  EXPECT_TRUE(line.read_frame(frame_kind::ready));
  line.send_frame(frame_kind::commit, encode(detail::round_message{.round = 1}));
  EXPECT_TRUE(line.read_frame(frame_kind::committed));
  outcome out = guest.get();
  ASSERT_TRUE(out.is_met()) << out.text();
  const bytes body = encode(detail::step_message{.step = 1, .payload = bytes(128)});
  line.send(detail::encode_header(
      {.body_bytes = static_cast<std::uint32_t>(body.size()), .kind = frame_kind::broadcast}));
  line.send(std::span{body}.first(body.size() - 1));
  line.close();
  try {
    (void)out.met->broadcast({}, deadline::after(5s));
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::peer_lost);
    EXPECT_THAT(failure.what(), HasSubstr("closed after 127 of 128 bytes"));
  }
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
