// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/network_port.hpp>
#include <spark_comm/rendezvous/shared_link.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using table = std::vector<network_port>;

network_port port(const char* interface, const char* address, int prefix_length) {
  return {.interface = interface, .address = address, .prefix_length = prefix_length};
}

// Two machines of several ports each, of which one pair is cabled together.
const table host_a = {port("lo", "127.0.0.1", 8),
                      port("docker0", "172.17.0.1", 16),
                      port("eno1", "198.51.100.10", 24),
                      port("port2", "192.0.2.13", 30),
                      port("port1", "192.0.2.9", 30)};
const table host_b = {port("lo", "127.0.0.1", 8),
                      port("docker0", "172.17.0.1", 16),
                      port("eno1", "198.51.100.11", 24),
                      port("port2", "192.0.2.17", 30),
                      port("port1", "192.0.2.10", 30)};

TEST(shared_link, is_the_pair_that_is_cabled_together) {
  for (const auto& [mine, theirs] : {std::pair{host_a, host_b}, {host_b, host_a}}) {
    const shared_link link = choose_link(mine, theirs);
    EXPECT_EQ(link.mine.interface, "port1");
    EXPECT_EQ(link.theirs.interface, "port1");
    EXPECT_EQ(shared_links(mine, theirs).size(), 2U);  // and the house's network after it
  }
}

TEST(shared_link, is_the_fastest_where_speeds_are_known) {
  table mine = host_a;
  table theirs = host_b;
  for (table* const side : {&mine, &theirs}) {
    (*side)[2].speed_mbps = 200000;
    (*side)[4].speed_mbps = 100000;
  }
  EXPECT_EQ(choose_link(mine, theirs).mine.interface, "eno1");
  theirs[2].speed_mbps = 10000;  // the slower end counts
  EXPECT_EQ(choose_link(mine, theirs).mine.interface, "port1");
}

TEST(shared_link, is_never_a_bridge_a_loop_or_a_link_local_address) {
  const table here = {port("lo", "127.0.0.1", 8),
                      port("docker0", "172.17.0.1", 16),
                      port("br-1a2b", "172.18.0.1", 16),
                      port("port1", "169.254.3.1", 16),
                      port("port1", "fe80::1", 64)};
  table there = here;
  there[1].address = "172.17.0.2";
  there[2].address = "172.18.0.2";
  there[3].address = "169.254.3.2";
  there[4].address = "fe80::2";
  EXPECT_TRUE(shared_links(here, there).empty());
  try {
    (void)choose_link(here, there);
    ADD_FAILURE();
  } catch (const error& failure) {
    EXPECT_EQ(failure.kind(), errc::invalid_usage);
    EXPECT_THAT(failure.message(),
                AllOf(HasSubstr("no usable shared link"),
                      HasSubstr("port1 169.254.3.1/16 (link-local)"),
                      HasSubstr("docker0 172.17.0.2/16 (a bridge of containers)")));
  }
}

TEST(shared_link, needs_two_addresses_and_a_link_at_both_ends) {
  const table here = {port("eth0", "192.0.2.1", 24)};
  EXPECT_TRUE(shared_links(here, here).empty());
  table there = {port("eth0", "192.0.2.2", 24)};
  EXPECT_EQ(shared_links(here, there).size(), 1U);
  there[0].is_up = false;
  EXPECT_TRUE(shared_links(here, there).empty());
  EXPECT_TRUE(shared_links({}, there).empty());
}

}  // namespace
}  // namespace spark_comm::rendezvous
