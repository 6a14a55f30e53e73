// SPDX-License-Identifier: AGPL-3.0-only
#include "support/expect_error.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/paths/detail/path_offer.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spark_comm::detail {
namespace {

path_offer offer_from(const std::string& host) {
  path_offer made{.has_kernels = 1, .has_segments = 1};
  set_text(made.host, host);
  return made;
}

TEST(path_offer, arrives_as_it_was_sent) {
  path_offer sent = offer_from("here");
  sent.has_segments = 0;
  set_text(sent.reason, "no room");
  sent.segments.reserved[63] = 7;
  const path_offer got = decode_offer(encode(sent));
  EXPECT_EQ(text_of(got.host), "here");
  EXPECT_EQ(text_of(got.reason), "no room");
  EXPECT_EQ(got.segments.reserved[63], 7);
  EXPECT_EQ(got.has_kernels, 1);
  EXPECT_EQ(got.has_segments, 0);
}

TEST(path_offer, is_refused_when_it_has_another_size) {
  rendezvous::bytes bytes = encode(path_offer{});
  bytes.pop_back();
  EXPECT_THROW(static_cast<void>(decode_offer(bytes)), error);
}

TEST(path_offer, cuts_a_reason_that_does_not_fit) {
  path_offer made;
  set_text(made.reason, std::string(1000, 'x'));
  EXPECT_EQ(text_of(made.reason), std::string(made.reason.size(), 'x'));
}

TEST(path_offer, ranks_are_near_when_all_are_on_one_host) {
  EXPECT_TRUE(are_near(std::vector{offer_from("a"), offer_from("a"), offer_from("a")}));
  EXPECT_FALSE(are_near(std::vector{offer_from("a"), offer_from("a"), offer_from("b")}));
  EXPECT_FALSE(this_host().empty());
  EXPECT_EQ(this_host(), this_host());
}

TEST(path_offer, the_first_rank_without_a_part_is_named_with_its_reason) {
  std::vector offers(3, offer_from("a"));
  EXPECT_FALSE(first_without(offers, &path_offer::has_segments).has_value());
  offers[1].has_segments = 0;
  offers[2].has_segments = 0;
  set_text(offers[1].reason, "not exportable");
  const auto missing = first_without(offers, &path_offer::has_segments);
  ASSERT_TRUE(missing.has_value());
  EXPECT_EQ(missing->rank, 1);
  EXPECT_EQ(missing->reason, "not exportable");
  EXPECT_FALSE(first_without(offers, &path_offer::has_kernels).has_value());
}

}  // namespace
}  // namespace spark_comm::detail
