// SPDX-License-Identifier: AGPL-3.0-only
// The addresses of a machine's network interfaces, and which of them are good for talking to
// another machine.
#pragma once

#include <spark_comm/core/export.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::rendezvous {

/// One address of one interface.
struct network_port {
  std::string interface;
  std::string address;  ///< Without the prefix: "192.0.2.9", "fd77::1".
  int prefix_length = 0;
  bool is_up = true;
  int speed_mbps = 0;  ///< 0: not known, as for virtual interfaces.

  friend bool operator==(const network_port&, const network_port&) = default;
};

/// Why an address is no way to another machine.
enum class port_fault : std::uint8_t {
  none,        ///< It is one.
  down,        ///< The interface has no link.
  loopback,    ///< It leads back here.
  container,   ///< A bridge of containers or virtual machines: every machine has the same.
  link_local,  ///< 169.254.0.0/16 or fe80::/10: holds on its own cable only, and says not on which.
  malformed,   ///< Neither an IPv4 nor an IPv6 address, or no prefix of one.
};

inline constexpr port_fault all_port_faults[] = {port_fault::none,
                                                 port_fault::down,
                                                 port_fault::loopback,
                                                 port_fault::container,
                                                 port_fault::link_local,
                                                 port_fault::malformed};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(port_fault fault) noexcept;

/// Containers' bridges are known by their names: docker, br-, virbr, cni, podman, lxc.
[[nodiscard]] SPARK_COMM_API port_fault fault_of(const network_port& port);

/// Both addresses are in one subnet, that is, agree in the prefix of both.
[[nodiscard]] SPARK_COMM_API bool share_subnet(const network_port& left, const network_port& right);

/// This machine's interfaces with an address, now.
/// Throws: system_failed.
/// Source: getifaddrs(3); /sys/class/net/*/speed.
[[nodiscard]] SPARK_COMM_API std::vector<network_port> local_ports();

}  // namespace spark_comm::rendezvous
