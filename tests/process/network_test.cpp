// SPDX-License-Identifier: AGPL-3.0-only
// Meetings between two hosts: every family of addresses, a key, and none.
#include "process/children.hpp"
#include "process/two_hosts.hpp"
#include "unit/rendezvous/ranks.hpp"
#include "unit/rendezvous/raw_peer.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/address.hpp>
#include <spark_comm/rendezvous/session.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <chrono>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>

namespace spark_comm::rendezvous::testing {
namespace {

using spark_comm::testing::child;
using spark_comm::testing::enter;
using spark_comm::testing::must;
using spark_comm::testing::teller;
using spark_comm::testing::two_hosts;
using ::testing::HasSubstr;

meeting_options keyed(std::string_view key = "0123456789abcdef0123456789abcdef") {
  meeting_options options = quiet();
  options.key = secret::from_text(key);
  return options;
}

class network : public two_hosts {
 protected:
  /// Rank 0 in `a`, as `head_at`; rank 1 in `b`, which is given `host` and the head's port, or the
  /// head's own words if `host` is empty.
  void expect_to_meet(const std::string& head_at, const std::string& host) {
    child first{[&](const teller& tell) {
      enter(a);
      meeting_options options = keyed();
      options.on_listening = tell;
      tell(try_meet({head_at, 0, 2}, {}, 10s, options).text());
    }};
    const std::string at = first.line();
    child second{[&](const teller& tell) {
      enter(b);
      const std::string where =
          host.empty() ? head_at
                       : to_string(join_address(host, std::to_string(parse_address(at).port)));
      const outcome out = try_meet({where, 1, 2}, {}, 10s, keyed());
      tell(out.text());
      if (out.is_met()) {
        tell(out.met->listener_addresses().at(1));
      }
    }};
    EXPECT_EQ(first.line(), "met");
    EXPECT_EQ(second.line(), "met");
    workers_listener = second.line();
  }

  std::string workers_listener;
};

TEST_F(network, ranks_meet_over_ipv4) {
  expect_to_meet("10.77.0.1:0", "10.77.0.1");
  EXPECT_THAT(workers_listener, HasSubstr("10.77.0.2:"));
}

TEST_F(network, ranks_meet_over_ipv6) {
  expect_to_meet("[fd77::1]:0", "fd77::1");
  EXPECT_THAT(workers_listener, HasSubstr("[fd77::2]:"));
}

TEST_F(network, ranks_meet_over_link_local_addresses_with_each_hosts_own_interface) {
  expect_to_meet("[fe80::1%wa]:0", "fe80::1%wb");
  EXPECT_THAT(workers_listener, HasSubstr("[fe80::2%wb]:"));
}

TEST_F(network, a_head_on_every_interface_is_reached_by_both_families) {
  expect_to_meet("[::]:0", "10.77.0.1");
  expect_to_meet("[::]:0", "fd77::1");
}

TEST_F(network, a_file_carries_an_address_that_the_other_host_reaches) {
  std::string folder = std::filesystem::temp_directory_path() / "spark_comm_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  expect_to_meet("file://" + folder + "/meeting", "");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST_F(network, three_workers_of_two_hosts_reach_each_other_by_link_local_addresses) {
  child first{[&](const teller& tell) {
    enter(a);
    meeting_options options = keyed();
    options.on_listening = tell;
    tell(try_meet({"[fe80::1%wa]:0", 0, 3}, {}, 10s, options).text());
  }};
  const auto port = std::to_string(parse_address(first.line()).port);
  child second{[&](const teller& tell) {
    enter(a);
    tell(try_meet({"[fe80::1%wa]:" + port, 1, 3}, {}, 10s, keyed()).text());
  }};
  child third{[&](const teller& tell) {
    enter(b);
    tell(try_meet({"[fe80::1%wb]:" + port, 2, 3}, {}, 10s, keyed()).text());
  }};
  EXPECT_EQ(first.line(), "met");
  EXPECT_EQ(second.line(), "met");
  EXPECT_EQ(third.line(), "met");
}

/// Says hello in plain words and returns all that it is told.
bytes greet_without_tls(const std::string& where) {
  const raw_socket peer;
  const address to = parse_address(where);
  sockaddr_in at = loopback(to.port);
  if (::inet_pton(AF_INET, to.host.c_str(), &at.sin_addr) != 1 ||
      ::connect(peer.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    throw std::runtime_error{"cannot connect to " + where};
  }
  peer.send_frame(detail::frame_kind::hello, raw_hello(1, 2));
  return peer.read(4096);
}

TEST_F(network, the_other_host_comes_in_with_the_key_and_not_otherwise) {
  child first{[&](const teller& tell) {
    enter(a);
    meeting_options options = keyed();
    options.on_listening = tell;
    tell(try_meet({"10.77.0.1:0", 0, 2}, {}, 10s, options).text());
  }};
  const std::string where = first.line();
  child others{[&](const teller& tell) {
    enter(b);
    tell(try_meet({where, 1, 2}, {}, 5s, keyed("fedcba9876543210fedcba9876543210")).text());
    tell(try_meet({where, 1, 2}, {}, 5s, quiet()).text());
    tell(std::to_string(greet_without_tls(where).size()));
    tell(try_meet({where, 1, 2}, {}, 5s, keyed()).text());
  }};
  EXPECT_THAT(others.line(), HasSubstr("do not share a key"));
  EXPECT_THAT(others.line(), HasSubstr("needs a key"));
  EXPECT_EQ(others.line(), "7");  // one alert of TLS, and nothing of the meeting
  EXPECT_EQ(others.line(), "met");
  EXPECT_EQ(first.line(), "met");
}

TEST_F(network, without_ipv6_the_rest_still_works) {
  child alone{[&](const teller& tell) {
    enter(a);
    must("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
    for (const char* const at : {"127.0.0.1:0", "localhost:0"}) {
      head first{2, 10s, {}, at};
      auto other = worker(first.where(), 1, 2);
      tell(other.get().text());
      tell(first.result().text());
    }
  }};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(alone.line(), "met");
  }
}

TEST_F(network, an_unreachable_head_is_tried_until_it_is_there) {
  must("ip -n " + b + " link set wb down");
  child first{[&](const teller& tell) {
    enter(a);
    meeting_options options = keyed();
    options.on_listening = tell;
    tell(try_meet({"10.77.0.1:0", 0, 2}, {}, 10s, options).text());
  }};
  const std::string where = first.line();
  child second{[&](const teller& tell) {
    enter(b);
    tell(try_meet({where, 1, 2}, {}, 10s, keyed()).text());
  }};
  std::this_thread::sleep_for(500ms);
  must("ip -n " + b + " link set wb up");
  EXPECT_EQ(first.line(), "met");
  EXPECT_EQ(second.line(), "met");
}

}  // namespace
}  // namespace spark_comm::rendezvous::testing
