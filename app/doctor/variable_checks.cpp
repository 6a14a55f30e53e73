// SPDX-License-Identifier: AGPL-3.0-only
// The environment: names that nobody reads, values out of range, interfaces that are not there.
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/halves.hpp"
#include "doctor/snapshot.hpp"
#include "doctor/variable_ranges.hpp"

#include <spark_comm/comm/environment_check.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/nccl/interface_filter.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::app::doctor {
namespace {

void check_names(const machine_snapshot& machine, findings& out) {
  std::vector<std::string> names;
  for (const auto& [name, value] : machine.variables) {
    names.push_back(name);
  }
  for (const misspelt_variable& each : misspelt_variables(names)) {
    out.push_back(
        {.how = grade::warning,
         .check = "env.misspelt",
         .seen = fmt::format("the variable {} is set, but nothing reads it", each.name),
         .means = "Its value is ignored in silence; probably " + each.nearest + " was meant.",
         .remedy = fmt::format("export {}=\"${}\"; unset {}", each.nearest, each.name, each.name)});
  }
}

void check_values(const machine_snapshot& machine, findings& out) {
  for (const auto& [name, value] : machine.variables) {
    if (const std::string accepted = refused_value(name, machine.variables); !accepted.empty()) {
      out.push_back({.how = grade::problem,
                     .check = "env.value",
                     .seen = fmt::format("{} is '{}'", name, value),
                     .means = "Accepted: " + accepted + ".",
                     .remedy = "unset " + name});
    }
  }
}

void check_selection(const machine_snapshot& machine,
                     const std::string& variable,
                     const std::vector<std::string>& present,
                     findings& out) {
  const std::string list = machine.variable(variable);
  if (!list.empty() && nccl::select_interfaces(list, present).empty()) {
    out.push_back({.how = grade::problem,
                   .check = "env.no_interface",
                   .seen = fmt::format("{} is '{}', which selects nothing", variable, list),
                   .means = fmt::format("A join ends with an error; present are: {}.",
                                        fmt::join(present, ", ")),
                   .remedy = "unset " + variable});
  }
}

/// Ports that carry traffic if NCCL chooses among all, but are excluded by NCCL_IB_HCA.
void check_halves_in_use(const machine_snapshot& machine,
                         const std::vector<std::string>& devices,
                         findings& out) {
  const std::string list = machine.variable("NCCL_IB_HCA");
  const auto selected = nccl::select_interfaces(list, devices);
  const auto is_selected = [&](const roce_port& port) {
    return std::ranges::find(selected, port.device) != selected.end();
  };
  for (const roce_port& port : machine.roce) {
    const roce_port* const twin = other_half(machine, port);
    if (twin != nullptr && port.is_active && twin->is_active && is_selected(port) &&
        !is_selected(*twin)) {
      out.push_back(
          {.how = grade::warning,
           .check = "env.one_half",
           .seen = fmt::format("NCCL_IB_HCA is '{}', which leaves out {}, the other half of "
                               "the port of {}",
                               list,
                               twin->device,
                               port.device),
           .means = "Half of the cable's speed is left unused.",
           .remedy = fmt::format("export NCCL_IB_HCA=={},{}", port.device, twin->device)});
    }
  }
}

void check_switched_off(const machine_snapshot& machine, findings& out) {
  if (std::ranges::none_of(machine.roce, &roce_port::is_active)) {
    return;
  }
  for (const auto& [name, value] : {std::pair{"NCCL_IB_DISABLE", "1"}, {"NCCL_NET", "Socket"}}) {
    if (machine.variable(name) == value) {
      out.push_back({.how = grade::warning,
                     .check = "env.roce_off",
                     .seen = fmt::format("{}={} while RoCE ports have a link", name, value),
                     .means = "NCCL sends through TCP: slower, and at a processor's cost.",
                     .remedy = fmt::format("unset {}", name)});
    }
  }
}

}  // namespace

findings check_variables(const machine_snapshot& machine) {
  findings out;
  check_names(machine, out);
  check_values(machine, out);
  std::vector<std::string> interfaces;
  for (const network_interface& each : machine.interfaces) {
    interfaces.push_back(each.name);
  }
  std::vector<std::string> devices;
  for (const roce_port& each : machine.roce) {
    devices.push_back(each.device);
  }
  check_selection(machine, "NCCL_SOCKET_IFNAME", interfaces, out);
  check_selection(machine, "NCCL_IB_HCA", devices, out);
  check_halves_in_use(machine, devices, out);
  check_switched_off(machine, out);
  return out;
}

findings check_machine(const machine_snapshot& machine) {
  findings all;
  for (const auto check : {check_gpus, check_nccl, check_roce, check_system, check_variables}) {
    findings some = check(machine);
    all.insert(all.end(), some.begin(), some.end());
  }
  return by_grade(std::move(all));
}

}  // namespace spark_comm::app::doctor
