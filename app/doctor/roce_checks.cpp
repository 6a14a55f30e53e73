// SPDX-License-Identifier: AGPL-3.0-only
// The ports that RDMA goes over: their links, halves, packet sizes and addresses.
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/halves.hpp"
#include "doctor/snapshot.hpp"

#include <spark_comm/nccl/gid.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <fmt/format.h>
#include <string>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

constexpr double spark_port_gbps = 200;
constexpr int jumbo_mtu = 9000;

bool has_routable_gid(const roce_port& port) {
  return std::ranges::any_of(port.gids, [](const nccl::gid_entry& entry) {
    return entry.type == nccl::gid_type::roce_v2 && nccl::is_ipv4(entry) &&
           !nccl::is_link_local(entry);
  });
}

std::string address_command(const roce_port& port) {
  return fmt::format(
      "sudo ip address add 192.168.N.1/24 dev {} (.2 on the other machine, another N "
      "for each interface)",
      port.interface);
}

void check_device_files(const machine_snapshot& machine, findings& out) {
  bool has_verbs = false;
  for (const auto& [path, access] : machine.devices) {
    has_verbs = has_verbs || (path.starts_with("/dev/infiniband/uverbs") && access == "rw");
  }
  if (!has_verbs) {
    out.push_back(
        {.how = grade::problem,
         .check = "roce.device_file",
         .seen = "there are RDMA devices, but no /dev/infiniband/uverbs* to open",
         .means = "NCCL falls back to sockets without a word, at a fraction of the speed.",
         .remedy = "sudo modprobe ib_uverbs; in a container: --device=/dev/infiniband"});
  }
}

void check_link(const machine_snapshot& machine, const roce_port& port, findings& out) {
  double expected = machine.is_spark() ? spark_port_gbps : 0;
  for (const roce_port& other : machine.roce) {
    if (other.is_active && other.link.most_speed_gts == port.link.most_speed_gts) {
      expected = std::max(expected, other.rate_gbps);
    }
  }
  if (port.rate_gbps > 0 && port.rate_gbps < expected) {
    out.push_back({.how = grade::warning,
                   .check = "roce.slow_link",
                   .seen = fmt::format(
                       "{} runs at {} Gb/s, and can do {}", port.device, port.rate_gbps, expected),
                   .means = "Cable, module or switch port are for a lower speed.",
                   .remedy = "sudo ethtool " + port.interface +
                             " shows what both ends offer; use a "
                             "cable for " +
                             fmt::format("{} Gb/s", expected)});
  }
  const bool is_slow = port.link.speed_gts > 0 && port.link.speed_gts < port.link.most_speed_gts;
  // A Spark gives each half four lanes, whatever the chip could take.
  const bool is_narrow = !machine.is_spark() && port.link.width < port.link.most_width;
  if (is_slow || is_narrow) {
    out.push_back({.how = grade::warning,
                   .check = "roce.pcie",
                   .seen = fmt::format("{} has PCIe {} GT/s x{}, and can do {} GT/s x{}",
                                       port.device,
                                       port.link.speed_gts,
                                       port.link.width,
                                       port.link.most_speed_gts,
                                       port.link.most_width),
                   .means = "The card cannot take in what its link could carry.",
                   .remedy = "start the machine anew; if it stays: seat the card again, see sudo "
                             "lspci -vv -s " +
                             port.pci_address});
  }
}

void check_mtu(const machine_snapshot& machine, const roce_port& port, findings& out) {
  const network_interface* const interface = machine.interface(port.interface);
  if (interface != nullptr && interface->mtu < jumbo_mtu) {
    out.push_back(
        {.how = grade::warning,
         .check = "roce.mtu",
         .seen = fmt::format("{} sends packets of {} bytes", port.interface, interface->mtu),
         .means = "With 9000 on both ends, large messages are about a fifth faster.",
         .remedy = fmt::format("sudo ip link set {} mtu 9000, on both machines", port.interface)});
  }
}

void check_gids(const machine_snapshot& machine, const roce_port& port, findings& out) {
  const std::string asked = machine.variable("NCCL_IB_GID_INDEX");
  if (!asked.empty()) {
    try {
      const nccl::gid_choice chosen = nccl::choose_gid(port.gids, std::stoi(asked));
      if (!chosen.warning.empty()) {
        out.push_back({.how = grade::warning,
                       .check = "roce.gid_index",
                       .seen = fmt::format(
                           "NCCL_IB_GID_INDEX={}: on {} {}", asked, port.device, chosen.warning),
                       .means = "Queue pairs over it time out when the other machine is not on the "
                                "same wire.",
                       .remedy = "unset NCCL_IB_GID_INDEX: NCCL since 2.21 finds the right one"});
      }
    } catch (const std::exception& failure) {
      out.push_back(
          {.how = grade::problem,
           .check = "roce.gid_index",
           .seen = fmt::format("NCCL_IB_GID_INDEX={} fits no GID of {}", asked, port.device),
           .means = fmt::format("No connection comes about: {}.", failure.what()),
           .remedy = "unset NCCL_IB_GID_INDEX: NCCL since 2.21 finds the right one"});
    }
  }
}

bool is_linked_locally(const roce_port& port) {
  return std::ranges::any_of(port.gids, [](const nccl::gid_entry& entry) {
    return nccl::is_ipv4(entry) && nccl::is_link_local(entry);
  });
}

void check_addresses(const machine_snapshot& machine, findings& out) {
  for (const roce_port& port : machine.roce) {
    const roce_port* const twin = other_half(machine, port);
    if (!port.is_active || port.interface.empty() || has_routable_gid(port)) {
      continue;
    }
    if (is_linked_locally(port)) {
      out.push_back({.how = grade::warning,
                     .check = "roce.link_local",
                     .seen = fmt::format("{} has a link-local address only", port.interface),
                     .means =
                         "It says not which cable it belongs to: with several ports, whichever "
                         "answers first is used.",
                     .remedy = address_command(port)});
    } else if (twin != nullptr && twin->is_active && has_routable_gid(*twin)) {
      out.push_back(
          {.how = grade::warning,
           .check = "roce.half_unused",
           .seen = fmt::format("{} has no IPv4 address, while {}, the other half of the "
                               "same port, has one",
                               port.interface,
                               twin->interface),
           .means = "Each half carries 100 Gb/s; half of the cable's speed is left unused.",
           .remedy = address_command(port)});
    } else {
      out.push_back({.how = grade::warning,
                     .check = "roce.no_address",
                     .seen = fmt::format("{} has a link, but no IPv4 address", port.interface),
                     .means = "NCCL cannot use it for RoCE v2.",
                     .remedy = address_command(port)});
    }
  }
}

void check_halves(const machine_snapshot& machine, findings& out) {
  for (const roce_port& port : machine.roce) {
    const roce_port* const twin = other_half(machine, port);
    if (twin != nullptr && twin->is_active && !port.is_active) {
      out.push_back(
          {.how = grade::warning,
           .check = "roce.half_down",
           .seen = fmt::format("{} is down, while {}, the other half of the same port, has "
                               "a link",
                               port.interface,
                               twin->interface),
           .means = "Both halves share one cable, so they rise together; half of its speed "
                    "is lost.",
           .remedy = fmt::format("sudo ip link set {} up; if it stays down, use a cable "
                                 "that is approved for the machine",
                                 port.interface)});
    }
  }
}

void check_subnets(const machine_snapshot& machine, findings& out) {
  std::vector<rendezvous::network_port> ports;
  for (const rendezvous::network_port& address : machine.ports) {
    const bool is_roce =
        std::ranges::find(machine.roce, address.interface, &roce_port::interface) !=
        machine.roce.end();
    if (is_roce && rendezvous::fault_of(address) == rendezvous::port_fault::none) {
      ports.push_back(address);
    }
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (std::size_t j = i + 1; j < ports.size(); ++j) {
      if (ports[i].interface != ports[j].interface &&
          rendezvous::share_subnet(ports[i], ports[j])) {
        out.push_back(
            {.how = grade::warning,
             .check = "roce.same_subnet",
             .seen = fmt::format("{} and {} are in the same subnet ({}/{}, {}/{})",
                                 ports[i].interface,
                                 ports[j].interface,
                                 ports[i].address,
                                 ports[i].prefix_length,
                                 ports[j].address,
                                 ports[j].prefix_length),
             .means = "The kernel sends all packets for it through one of them; the other "
                      "idles or times out.",
             .remedy = "give each interface a subnet of its own, the same on both machines"});
      }
    }
  }
}

}  // namespace

findings check_roce(const machine_snapshot& machine) {
  findings out;
  if (machine.roce.empty()) {
    return out;
  }
  check_device_files(machine, out);
  for (const roce_port& port : machine.roce) {
    if (port.is_active) {
      check_link(machine, port, out);
      check_mtu(machine, port, out);
      check_gids(machine, port, out);
    }
  }
  check_addresses(machine, out);
  check_halves(machine, out);
  check_subnets(machine, out);
  if (std::ranges::none_of(machine.roce, &roce_port::is_active)) {
    out.push_back({.how = grade::note,
                   .check = "roce.no_link",
                   .seen = fmt::format("none of the {} RDMA ports has a link", machine.roce.size()),
                   .means =
                       "Alone, this machine needs none; with a second one, the ranks would talk "
                       "over sockets of the ordinary network.",
                   .remedy = {}});
  }
  return out;
}

}  // namespace spark_comm::app::doctor
