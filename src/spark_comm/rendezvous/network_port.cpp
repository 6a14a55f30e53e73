// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace spark_comm::rendezvous {
namespace {

/// The bytes of an address, most significant first.
using raw_address = std::vector<std::uint8_t>;

std::optional<raw_address> parse(const std::string& text) {
  raw_address raw(sizeof(in6_addr));
  if (::inet_pton(AF_INET6, text.c_str(), raw.data()) == 1) {
    return raw;
  }
  raw.resize(sizeof(in_addr));
  if (::inet_pton(AF_INET, text.c_str(), raw.data()) == 1) {
    return raw;
  }
  return std::nullopt;
}

bool is_ipv4(const raw_address& raw) {
  return raw.size() == sizeof(in_addr);
}

bool agree(const raw_address& left, const raw_address& right, int prefix_length) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    const int bits = std::clamp(prefix_length - 8 * static_cast<int>(i), 0, 8);
    const int shift = 8 - bits;
    if (left[i] >> shift != right[i] >> shift) {
      return false;
    }
  }
  return true;
}

bool is_loopback(const raw_address& raw) {
  if (is_ipv4(raw)) {
    return raw[0] == 127;
  }
  return std::all_of(raw.begin(), raw.end() - 1, [](std::uint8_t byte) { return byte == 0; }) &&
         raw.back() == 1;
}

bool is_link_local(const raw_address& raw) {
  return is_ipv4(raw) ? raw[0] == 169 && raw[1] == 254 : raw[0] == 0xfe && raw[1] >> 6 == 2;
}

bool is_of_containers(std::string_view interface) {
  constexpr std::array<std::string_view, 7> bridges = {
      "docker", "br-", "virbr", "cni", "podman", "lxcbr", "lxdbr"};
  return std::ranges::any_of(
      bridges, [&](std::string_view bridge) { return interface.starts_with(bridge); });
}

int speed_of(const std::string& interface) {
  std::ifstream file{"/sys/class/net/" + interface + "/speed"};
  int speed = 0;
  return file >> speed && speed > 0 ? speed : 0;
}

std::optional<network_port> to_port(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || entry.ifa_netmask == nullptr) {
    return std::nullopt;
  }
  const int family = entry.ifa_addr->sa_family;
  const void* address = nullptr;
  const std::uint8_t* mask = nullptr;
  std::size_t mask_bytes = 0;
  if (family == AF_INET) {
    address = &reinterpret_cast<const sockaddr_in*>(entry.ifa_addr)->sin_addr;
    mask = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in*>(entry.ifa_netmask)->sin_addr);
    mask_bytes = sizeof(in_addr);
  } else if (family == AF_INET6) {
    address = &reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr;
    mask = reinterpret_cast<const std::uint8_t*>(
        &reinterpret_cast<const sockaddr_in6*>(entry.ifa_netmask)->sin6_addr);
    mask_bytes = sizeof(in6_addr);
  } else {
    return std::nullopt;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (::inet_ntop(family, address, text.data(), text.size()) == nullptr) {
    return std::nullopt;
  }
  int prefix_length = 0;
  for (std::size_t i = 0; i < mask_bytes; ++i) {
    prefix_length += std::popcount(mask[i]);
  }
  return network_port{.interface = entry.ifa_name,
                      .address = text.data(),
                      .prefix_length = prefix_length,
                      .is_up = (entry.ifa_flags & IFF_RUNNING) != 0,
                      .speed_mbps = speed_of(entry.ifa_name)};
}

}  // namespace

std::string_view name_of(port_fault fault) noexcept {
  switch (fault) {
    case port_fault::none:       return "usable";
    case port_fault::down:       return "down";
    case port_fault::loopback:   return "loopback";
    case port_fault::container:  return "a bridge of containers";
    case port_fault::link_local: return "link-local";
    case port_fault::malformed:  return "no address";
  }
  return "unknown";
}

port_fault fault_of(const network_port& port) {
  const std::optional<raw_address> raw = parse(port.address);
  if (!raw || port.prefix_length < 1 || port.prefix_length > 8 * static_cast<int>(raw->size())) {
    return port_fault::malformed;
  }
  if (is_loopback(*raw) || port.interface == "lo") {
    return port_fault::loopback;
  }
  if (is_of_containers(port.interface)) {
    return port_fault::container;
  }
  if (is_link_local(*raw)) {
    return port_fault::link_local;
  }
  return port.is_up ? port_fault::none : port_fault::down;
}

bool share_subnet(const network_port& left, const network_port& right) {
  const auto a = parse(left.address);
  const auto b = parse(right.address);
  return a && b && a->size() == b->size() && left.prefix_length == right.prefix_length &&
         agree(*a, *b, left.prefix_length);
}

std::vector<network_port> local_ports() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    throw_errno("getifaddrs", "cannot list the network interfaces", errno);
  }
  std::vector<network_port> ports;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (auto port = to_port(*entry)) {
      ports.push_back(std::move(*port));
    }
  }
  ::freeifaddrs(first);
  return ports;
}

}  // namespace spark_comm::rendezvous
