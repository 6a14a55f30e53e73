// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  try {
    (void)parse_address(text);
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::invalid_argument) << text;
    return failure.message();
  }
  return "accepted";
}

TEST(address, reads_every_right_spelling) {
  struct row {
    std::string text;
    address expected;
  };

  const std::vector<row> rows = {
      {"127.0.0.1:29500", {"127.0.0.1", 29500}},
      {"spark-1.local:1", {"spark-1.local", 1}},
      {"node_7:65535", {"node_7", 65535}},
      {"0.0.0.0:0", {"0.0.0.0", 0}},
      {"[::1]:29500", {"::1", 29500}},
      {"[::]:0", {"::", 0}},
      {"[fe80::1%eth0]:29500", {"fe80::1%eth0", 29500}},
      {"[::ffff:10.0.0.1]:80", {"::ffff:10.0.0.1", 80}},
  };
  for (const row& each : rows) {
    EXPECT_EQ(parse_address(each.text), each.expected) << each.text;
    EXPECT_EQ(to_string(each.expected), each.text);
  }
}

TEST(address, says_what_is_wrong_with_a_wrong_one) {
  struct row {
    std::string text;
    std::string reason;
  };

  const std::vector<row> rows = {
      {"", "it is empty"},
      {"::1:29500", "write [::1]:29500"},
      {"fe80::1%eth0:29500", "write [fe80::1%eth0]:29500"},
      {"a:b:1", "brackets"},
      {":29500", "the host is missing"},
      {"host", "the port is missing"},
      {"host:", "port '' is not a number"},
      {"host:65536", "port '65536' is not a number from 0 to 65535"},
      {"host:-1", "port '-1' is not a number"},
      {"host:+1", "port '+1' is not a number"},
      {"host:1 ", "is not a number"},
      {"host:99999999999999999999", "is not a number"},
      {"[::1]", "the port is missing"},
      {"[::1]29500", "the port is missing"},
      {"[::1:29500", "closing bracket"},
      {"[127.0.0.1]:1", "not an IPv6 address"},
      {"[fe80::1%]:1", "not an IPv6 address"},
      {"ho st:1", "neither a host name nor an address"},
      {"tcp//h:1", "neither a host name nor an address"},
      {std::string(254, 'a') + ":1", "neither a host name"},
      {std::string("a\nb:1"), "'a?b:1'"},
  };
  for (const row& each : rows) {
    EXPECT_THAT(refusal_of(each.text), HasSubstr(each.reason)) << each.text;
  }
}

TEST(address, joins_host_and_port_that_were_given_apart) {
  EXPECT_EQ(join_address("::1", "29500"), (address{"::1", 29500}));
  EXPECT_EQ(join_address("[::1]", "29500"), (address{"::1", 29500}));
  EXPECT_EQ(join_address("fe80::2%en0", "1"), (address{"fe80::2%en0", 1}));
  EXPECT_EQ(join_address("10.0.0.1", "29500"), (address{"10.0.0.1", 29500}));
  EXPECT_THROW((void)join_address("", "1"), error);
  EXPECT_THROW((void)join_address("h", "1x"), error);
}

TEST(place, is_checked_before_anything_is_opened) {
  struct row {
    world place;
    std::string reason;
  };

  const std::vector<row> rows = {
      {{"h:1", 2, 2}, "rank 2 is not from 0 to 1"},
      {{"h:1", -1, 2}, "rank -1 is not from 0 to 1"},
      {{"h:1", 0, 0}, "world size 0 is not from 1 to 1024"},
      {{"h:1", 0, -1}, "world size -1"},
      {{"h:1", 0, 1025}, "world size 1025"},
      {{"h:0", 1, 2}, "port 0 is for rank 0 only"},
      {{"", 0, 2}, "it is empty"},
  };
  for (const row& each : rows) {
    try {
      check_place(each.place);
      ADD_FAILURE() << each.reason;
    } catch (const error& failure) {
      EXPECT_EQ(failure.kind(), errc::invalid_argument);
      EXPECT_THAT(failure.message(), HasSubstr(each.reason));
    }
  }
  EXPECT_NO_THROW(check_place({"h:0", 0, 2}));
  EXPECT_NO_THROW(check_place({"", 0, 1}));
  EXPECT_NO_THROW(check_place({"h:1", 1023, 1024}));
}

}  // namespace
}  // namespace spark_comm::rendezvous
