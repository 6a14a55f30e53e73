// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/rendezvous/network_port.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace spark_comm::rendezvous {
namespace {

network_port port(const char* interface, const char* address, int prefix_length) {
  return {.interface = interface, .address = address, .prefix_length = prefix_length};
}

TEST(network_port, shares_a_subnet_when_the_prefixes_agree) {
  EXPECT_TRUE(share_subnet(port("a", "10.0.0.1", 9), port("b", "10.127.0.1", 9)));
  EXPECT_FALSE(share_subnet(port("a", "10.0.0.1", 9), port("b", "10.128.0.1", 9)));
  EXPECT_FALSE(share_subnet(port("a", "10.0.0.1", 24), port("b", "10.0.0.2", 25)));
  EXPECT_TRUE(share_subnet(port("a", "fd77::1", 64), port("b", "fd77::2", 64)));
  EXPECT_FALSE(share_subnet(port("a", "fd77::1", 64), port("b", "10.0.0.1", 64)));
  EXPECT_FALSE(share_subnet(port("a", "?", 8), port("b", "?", 8)));
}

TEST(network_port, says_what_is_wrong_with_an_address) {
  struct row {
    network_port port;
    port_fault fault;
  };

  network_port down = port("eth0", "192.0.2.1", 24);
  down.is_up = false;
  const row rows[] = {
      {port("eth0", "192.0.2.1", 24), port_fault::none},
      {port("eth0", "2001:db8::1", 64), port_fault::none},
      {down, port_fault::down},
      {port("eth0", "127.0.0.5", 8), port_fault::loopback},
      {port("lo", "192.0.2.1", 32), port_fault::loopback},
      {port("eth0", "::1", 128), port_fault::loopback},
      {port("virbr0", "192.168.122.1", 24), port_fault::container},
      {port("eth0", "169.254.1.1", 16), port_fault::link_local},
      {port("eth0", "fe80::1", 64), port_fault::link_local},
      {port("eth0", "febf::1", 64), port_fault::link_local},
      {port("eth0", "fec0::1", 64), port_fault::none},
      {port("eth0", "192.0.2", 24), port_fault::malformed},
      {port("eth0", "192.0.2.1", 33), port_fault::malformed},
      {port("eth0", "192.0.2.1", 0), port_fault::malformed},
  };
  std::set<std::string_view> names;
  for (const row& each : rows) {
    EXPECT_EQ(fault_of(each.port), each.fault) << each.port.interface << " " << each.port.address;
  }
  for (const port_fault fault : all_port_faults) {
    EXPECT_TRUE(names.insert(name_of(fault)).second);
    EXPECT_TRUE(std::ranges::any_of(rows, [&](const row& each) { return each.fault == fault; }));
  }
}

TEST(network_port, knows_this_machines_own) {
  const auto ports = local_ports();
  const auto loop = std::ranges::find(ports, "127.0.0.1", &network_port::address);
  ASSERT_NE(loop, ports.end());
  EXPECT_EQ(loop->prefix_length, 8);
  EXPECT_EQ(fault_of(*loop), port_fault::loopback);
}

}  // namespace
}  // namespace spark_comm::rendezvous
