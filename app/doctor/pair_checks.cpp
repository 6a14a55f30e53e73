// SPDX-License-Identifier: AGPL-3.0-only
#include "doctor/pair_checks.hpp"

#include "doctor/finding.hpp"
#include "doctor/machine_files.hpp"
#include "doctor/snapshot.hpp"
#include "quantity.hpp"

#include <spark_comm/core/error.hpp>
#include <spark_comm/rendezvous/shared_link.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

void compare_nccl(const machine_snapshot& mine, const machine_snapshot& theirs, findings& out) {
  if (mine.gpus.empty() && theirs.gpus.empty()) {
    return;
  }
  if (mine.nccl.empty() || theirs.nccl.empty()) {
    return;  // each machine's own check says it
  }
  const nccl_file& here = mine.nccl.front();
  const nccl_file& there = theirs.nccl.front();
  if (here.version != there.version) {
    out.push_back({.how = grade::problem,
                   .check = "pair.nccl_version",
                   .seen = fmt::format("NCCL is {} here and {} there", here.version, there.version),
                   .means = "Ranks with different versions are refused at the join.",
                   .remedy =
                       "install one version on both, or export SPARK_COMM_NCCL_LIBRARY to the "
                       "same build"});
  } else if (here.hash != there.hash) {
    out.push_back(
        {.how = grade::warning,
         .check = "pair.nccl_build",
         .seen = fmt::format("both have NCCL {}, but different builds ({} here, {} there)",
                             here.version,
                             here.path,
                             there.path),
         .means = "Pairs of different builds of one version have hung after minutes.",
         .remedy = "copy one file to both, and export SPARK_COMM_NCCL_LIBRARY to it"});
  }
}

void compare_driver(const machine_snapshot& mine, const machine_snapshot& theirs, findings& out) {
  if (mine.driver != theirs.driver) {
    out.push_back({.how = grade::warning,
                   .check = "pair.driver",
                   .seen = fmt::format("the driver is {} here and {} there",
                                       mine.driver.empty() ? "none" : mine.driver,
                                       theirs.driver.empty() ? "none" : theirs.driver),
                   .means =
                       "It may work, but nobody tests such a pair, and an update of one machine "
                       "is a common reason for new hangs.",
                   .remedy = "bring both machines to the same release"});
  }
}

/// Differences that are as they should be: a rank's place, its own devices, its own folders.
bool may_differ(std::string_view name) {
  constexpr std::array<std::string_view, 9> own = {"CUDA_VISIBLE_DEVICES",
                                                   "HOME",
                                                   "LD_LIBRARY_PATH",
                                                   "NCCL_HOSTID",
                                                   "NCCL_SOCKET_IFNAME",
                                                   "NCCL_IB_HCA",
                                                   "RANK",
                                                   "SPARK_COMM_RANK",
                                                   "SPARK_COMM_FLIGHT_DIR"};
  return std::ranges::find(own, name) != own.end() || name.ends_with("_FILE") ||
         name.starts_with("OMPI_") || name.starts_with("PMIX_") || name.starts_with("SPARK_HOME");
}

void compare_variables(const machine_snapshot& mine,
                       const machine_snapshot& theirs,
                       findings& out) {
  std::set<std::string> names;
  for (const machine_snapshot* const machine : {&mine, &theirs}) {
    for (const auto& [name, value] : machine->variables) {
      names.insert(name);
    }
  }
  const auto shown = [](const machine_snapshot& machine, const std::string& name) {
    const auto at = machine.variables.find(name);
    return at == machine.variables.end() ? "not set" : "'" + at->second + "'";
  };
  for (const std::string& name : names) {
    const std::string here = shown(mine, name);
    const std::string there = shown(theirs, name);
    if (here != there && !may_differ(name)) {
      out.push_back({.how = grade::warning,
                     .check = "pair.variable",
                     .seen = fmt::format("{} is {} here and {} there", name, here, there),
                     .means = "Ranks that are tuned differently can disagree on how to talk.",
                     .remedy = "set it alike on both, or on none: unset " + name});
    }
  }
}

std::string exports_for(const machine_snapshot& machine,
                        const std::vector<rendezvous::shared_link>& links,
                        rendezvous::network_port rendezvous::shared_link::* side) {
  std::vector<std::string> devices;
  for (const roce_port& port : machine.roce) {
    const bool is_shared = std::ranges::any_of(links, [&](const rendezvous::shared_link& link) {
      return (link.*side).interface == port.interface;
    });
    if (is_shared && port.is_active) {
      devices.push_back(port.device);
    }
  }
  std::string text = fmt::format("export NCCL_SOCKET_IFNAME=={}", (links.front().*side).interface);
  if (!devices.empty()) {
    text += fmt::format("; export NCCL_IB_HCA=={}", fmt::join(devices, ","));
  }
  return text;
}

void compare_link(const machine_snapshot& mine, const machine_snapshot& theirs, findings& out) {
  const auto links = rendezvous::shared_links(mine.ports, theirs.ports);
  if (links.empty()) {
    std::string why;
    try {
      (void)rendezvous::choose_link(mine.ports, theirs.ports);
    } catch (const error& failure) {
      why = failure.message();
    }
    out.push_back({.how = grade::problem,
                   .check = "pair.no_link",
                   .seen = why,
                   .means = "NCCL would choose interfaces that do not reach each other, and wait.",
                   .remedy = "give the two ports of one cable addresses in a subnet of their own"});
    return;
  }
  const rendezvous::shared_link& best = links.front();
  out.push_back(
      {.how = grade::note,
       .check = "pair.link",
       .seen = fmt::format("the best link that both share: {} {} here, {} {} there ({} in "
                           "all)",
                           best.mine.interface,
                           best.mine.address,
                           best.theirs.interface,
                           best.theirs.address,
                           links.size()),
       .means = "NCCL finds it by itself, unless other interfaces are in its way.",
       .remedy = fmt::format("to be sure: {}",
                             exports_for(mine, links, &rendezvous::shared_link::mine))});
  const network_interface* const here = mine.interface(best.mine.interface);
  const network_interface* const there = theirs.interface(best.theirs.interface);
  if (here != nullptr && there != nullptr && here->mtu != there->mtu) {
    out.push_back(
        {.how = grade::problem,
         .check = "pair.mtu",
         .seen = fmt::format("{} sends packets of {} bytes here, {} of {} there",
                             here->name,
                             here->mtu,
                             there->name,
                             there->mtu),
         .means = "Small messages pass and large ones vanish.",
         .remedy = fmt::format("sudo ip link set {} mtu {}, on the other machine the same",
                               here->name,
                               std::max(here->mtu, there->mtu))});
  }
}

}  // namespace

bool are_one_machine(const machine_snapshot& mine, const machine_snapshot& theirs) {
  return mine.host == theirs.host && mine.ports == theirs.ports;
}

findings compare_machines(const machine_snapshot& mine, const machine_snapshot& theirs) {
  findings out;
  compare_nccl(mine, theirs, out);
  compare_driver(mine, theirs, out);
  compare_variables(mine, theirs, out);
  if (are_one_machine(mine, theirs)) {
    out.push_back({.how = grade::note,
                   .check = "pair.one_machine",
                   .seen = "both ends are processes of this machine",
                   .means = "There is no link between them to judge; the burst goes over loopback.",
                   .remedy = {}});
    return out;
  }
  compare_link(mine, theirs, out);
  return out;
}

port_counters read_counters(const machine_files& files) {
  port_counters counters;
  const auto add = [&](const std::string& port, const std::string& path, std::uint64_t unit) {
    counters[port] += unit * static_cast<std::uint64_t>(files.number(path).value_or(0));
  };
  for (const std::string& name : files.names_in("sys/class/net")) {
    const std::string folder = "sys/class/net/" + name + "/statistics/";
    add(name, folder + "rx_bytes", 1);
    add(name, folder + "tx_bytes", 1);
  }
  for (const std::string& device : files.names_in("sys/class/infiniband")) {
    const std::string ports = "sys/class/infiniband/" + device + "/ports";
    for (const std::string& port : files.names_in(ports)) {
      const std::string folder = fmt::format("{}/{}/counters/", ports, port);
      add(device, folder + "port_rcv_data", 4);
      add(device, folder + "port_xmit_data", 4);
    }
  }
  return counters;
}

finding judge_burst(const port_counters& before,
                    const port_counters& after,
                    std::uint64_t bytes,
                    const std::vector<std::string>& expected) {
  std::vector<std::string> carriers;
  std::vector<std::string> amounts;
  for (const auto& [port, count] : after) {
    const auto at = before.find(port);
    const std::uint64_t earlier = at == before.end() ? 0 : at->second;
    const std::uint64_t moved = count < earlier ? 0 : count - earlier;
    if (moved >= bytes / 4) {
      carriers.push_back(port);
      amounts.push_back(fmt::format("{} by {}", port, size_text(moved)));
    }
  }
  const bool is_expected = std::ranges::any_of(carriers, [&](const std::string& port) {
    return std::ranges::find(expected, port) != expected.end();
  });
  if (is_expected) {
    return {
        .how = grade::note,
        .check = "pair.burst",
        .seen = fmt::format(
            "a burst of {} moved the counters of {}", size_text(bytes), fmt::join(amounts, ", ")),
        .means = "The link that both share is the one in use.",
        .remedy = {}};
  }
  if (carriers.empty()) {
    return {.how = grade::warning,
            .check = "pair.burst",
            .seen = fmt::format("a burst of {} moved the counters of no port", size_text(bytes)),
            .means =
                "Which link is in use is not proved: the counters are not shown here, or the "
                "ranks share memory.",
            .remedy = "run it outside of containers"};
  }
  return {.how = grade::warning,
          .check = "pair.burst",
          .seen = fmt::format("a burst of {} went over {}, not over {}",
                              size_text(bytes),
                              fmt::join(amounts, ", "),
                              fmt::join(expected, ", ")),
          .means = "Another link than the one that both share is in use.",
          .remedy = fmt::format("export NCCL_SOCKET_IFNAME=={}", fmt::join(expected, ","))};
}

}  // namespace spark_comm::app::doctor
