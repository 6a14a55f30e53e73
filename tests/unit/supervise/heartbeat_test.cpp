// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/supervise/heartbeat.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace spark_comm {
namespace {

lane_report make_lane(std::uint64_t submitted, std::size_t length) {
  lane_report lane{
      .submitted = submitted, .completed = submitted / 2, .base_signature = 77, .tail = {}};
  for (std::size_t each = 0; each < length; ++each) {
    operation_record record{.sequence = 1000 + each,
                            .ordinal = submitted - length + each + 1,
                            .count_elements = 1ULL << 40U,
                            .root_or_peer = -1};
    record.kind = operation_kind::reduce_scatter;
    record.dtype = data_type::bytes;
    record.op = reduce_op::avg;
    record.path = path_kind::two_shot;
    record.set(operation_flag::uneven);
    lane.tail.push_back(record);
  }
  return lane;
}

void expect_equal(const lane_report& a, const lane_report& b) {
  EXPECT_EQ(a.submitted, b.submitted);
  EXPECT_EQ(a.completed, b.completed);
  EXPECT_EQ(a.base_signature, b.base_signature);
  EXPECT_EQ(a.tail, b.tail);
}

std::vector<lifeline_message> one_of_each() {
  return {
      heartbeat{.number = 5,
                .last_sequence = 900,
                .collectives = make_lane(100, 16),
                .outbound = make_lane(3, 3),
                .inbound = make_lane(0, 0)},
      failure_notice{.code = errc::timed_out,
                     .origin = 2,
                     .sequence = 0,
                     .text = "läuft nicht",
                     .peers = {0, 1, -1}},
      history_request{.lane = lane_kind::inbound, .first = 77},
      history_reply{.lane = lane_kind::outbound, .part = make_lane(5000, 100)},
      farewell{},
  };
}

TEST(heartbeat, every_message_survives_the_wire) {
  const auto messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<lifeline_message>);
  for (const lifeline_message& message : messages) {
    const auto back = decode(encode(9, message));
    ASSERT_TRUE(back.has_value()) << message.index();
    EXPECT_EQ(back->generation, 9U);
    ASSERT_EQ(back->message.index(), message.index());
  }
  const auto beat = std::get<heartbeat>(decode(encode(0, messages[0]))->message);
  EXPECT_EQ(beat.number, 5U);
  EXPECT_EQ(beat.last_sequence, 900U);
  expect_equal(beat.collectives, std::get<heartbeat>(messages[0]).collectives);
  expect_equal(beat.outbound, std::get<heartbeat>(messages[0]).outbound);
  expect_equal(beat.inbound, std::get<heartbeat>(messages[0]).inbound);
  const auto notice = std::get<failure_notice>(decode(encode(0, messages[1]))->message);
  EXPECT_EQ(notice.code, errc::timed_out);
  EXPECT_EQ(notice.origin, 2);
  EXPECT_EQ(notice.sequence, 0U);
  EXPECT_EQ(notice.text, "läuft nicht");
  EXPECT_EQ(notice.peers, (std::vector<std::int32_t>{0, 1, -1}));
  const auto reply = std::get<history_reply>(decode(encode(0, messages[3]))->message);
  EXPECT_EQ(reply.lane, lane_kind::outbound);
  expect_equal(reply.part, std::get<history_reply>(messages[3]).part);
}

TEST(heartbeat, the_bytes_are_little_endian) {
  const auto bytes = encode(0x01020304, history_request{lane_kind::inbound, 0x1122});
  const std::vector<int> expected = {0x53, 1, 2, 4, 3, 2, 1, 2, 0x22, 0x11, 0x00, 0, 0, 0, 0, 0};
  ASSERT_EQ(bytes.size(), expected.size());
  for (std::size_t each = 0; each < bytes.size(); ++each) {
    EXPECT_EQ(std::to_integer<int>(bytes[each]), expected[each]) << each;
  }
}

TEST(heartbeat, long_texts_and_lists_are_cut) {
  failure_notice notice;
  notice.text.assign(2000, 'x');
  notice.peers.assign(500, 3);
  const auto back = decode(encode(0, notice));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(std::get<failure_notice>(back->message).text.size(), most_text_bytes);
  EXPECT_EQ(std::get<failure_notice>(back->message).peers.size(), most_blamed_peers);
}

TEST(heartbeat, bytes_too_few_or_too_many_are_refused) {
  for (const lifeline_message& message : one_of_each()) {
    auto bytes = encode(1, message);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(decode(std::span{bytes}.first(length)).has_value());
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(decode(bytes).has_value());
  }
}

TEST(heartbeat, values_that_cannot_be_are_refused) {
  struct row {
    const char* what;
    lifeline_message message;
    std::size_t at;
    int value;
  };

  lane_report lane = make_lane(4, 1);
  const row rows[] = {
      {"mark", farewell{}, 0, 0x54},
      {"version", farewell{}, 1, 2},
      {"type", farewell{}, 2, 5},
      {"lane", history_request{}, 7, 3},
      {"error code", failure_notice{}, 7, 0},
      {"flag", failure_notice{}, 12, 2},
      {"sequence without flag", failure_notice{}, 13, 1},
      {"longer than submitted", history_reply{lane_kind::collectives, lane}, 8, 0},
      {"kind", history_reply{lane_kind::collectives, lane}, 34, 99},
      {"dtype", history_reply{lane_kind::collectives, lane}, 35, 99},
      {"op", history_reply{lane_kind::collectives, lane}, 36, 99},
      {"path", history_reply{lane_kind::collectives, lane}, 37, 99},
      {"flags", history_reply{lane_kind::collectives, lane}, 45, 99},
  };
  for (const row& each : rows) {
    auto bytes = encode(0, each.message);
    ASSERT_TRUE(decode(bytes).has_value()) << each.what;
    bytes.at(each.at) = static_cast<std::byte>(each.value);
    EXPECT_FALSE(decode(bytes).has_value()) << each.what;
  }
}

TEST(heartbeat, random_bytes_never_crash) {
  std::mt19937 random{3};
  const auto messages = one_of_each();
  for (int round = 0; round < 20000; ++round) {
    auto bytes = encode(0, messages[random() % messages.size()]);
    for (std::uint32_t hit = 0; hit <= random() % 4; ++hit) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random() & 0xffU);
    }
    if (const auto back = decode(bytes)) {
      EXPECT_EQ(encode(back->generation, back->message), bytes);  // one meaning, one form
    }
  }
}

}  // namespace
}  // namespace spark_comm
