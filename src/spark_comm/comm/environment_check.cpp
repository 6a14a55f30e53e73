// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/environment_check.hpp>
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/spelling.hpp>
#include <spark_comm/nccl/interface_filter.hpp>
#include <spark_comm/nccl/variables.hpp>
#include <spark_comm/rendezvous/environment.hpp>
#include <spark_comm/rendezvous/network_port.hpp>

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace spark_comm {
namespace {

constexpr std::string_view names[] = {
    "SPARK_COMM_ADDRESS",
    "SPARK_COMM_FLIGHT_DIR",
    "SPARK_COMM_FLIGHT_ENTRIES",
    "SPARK_COMM_HEARTBEAT_MS",
    "SPARK_COMM_HOST_DEVICES",
    "SPARK_COMM_HOST_FAULTS",
    "SPARK_COMM_HOST_FAULTS_FILE",
    "SPARK_COMM_HOST_LIBRARY",
    "SPARK_COMM_KEY",
    "SPARK_COMM_KEY_FILE",
    "SPARK_COMM_METRICS_DIR",
    "SPARK_COMM_METRICS_PORT",
    "SPARK_COMM_MISMATCH_CHECK",
    "SPARK_COMM_NCCL_LIBRARY",
    "SPARK_COMM_PATH_TABLE",
    "SPARK_COMM_RANK",
    "SPARK_COMM_SILENCE_MS",
    "SPARK_COMM_SUPERVISION",
    "SPARK_COMM_WORLD_SIZE",
};

// Names of NCCL are long and like each other, so one that a plug-in reads may be four letters off.
constexpr std::size_t nccl_limit = 2;
constexpr std::size_t own_limit = 3;

/// Only those are compared with all known names.
bool looks_like(std::string_view name, std::string_view prefix) {
  constexpr std::size_t prefix_limit = 2;
  return name.size() > prefix.size() &&
         spelling_distance(name.substr(0, prefix.size()), prefix) <= prefix_limit;
}

/// SPARK_COMM_HEARTBEAT for SPARK_COMM_HEARTBEAT_MS: too far apart to be a slip of a finger.
std::optional<std::string_view> whole_of(std::string_view name) {
  const auto whole =
      std::ranges::find_if(names, [&](std::string_view known) { return known.starts_with(name); });
  return whole == std::ranges::end(names) || !name.starts_with("SPARK_COMM_")
             ? std::nullopt
             : std::optional{*whole};
}

std::optional<std::string_view> meant_by(std::string_view name) {
  if (looks_like(name, "SPARK_COMM_")) {
    const auto near = nearest_word(name, names, own_limit);
    return near ? near : whole_of(name);
  }
  if (looks_like(name, "NCCL_")) {
    return nearest_word(name, nccl::known_variables(), nccl_limit);
  }
  return std::nullopt;
}

}  // namespace

std::span<const std::string_view> known_variables() noexcept {
  return names;
}

std::vector<misspelt_variable> misspelt_variables(std::span<const std::string> given) {
  std::vector<misspelt_variable> wrong;
  for (const std::string& name : given) {
    const auto meant = meant_by(name);
    if (meant && *meant != name) {
      wrong.push_back({.name = name, .nearest = std::string{*meant}});
    }
  }
  return wrong;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    found.emplace_back(text.substr(0, text.find('=')));
  }
  return found;
}

void check_environment(const diagnostics& log) {
  for (const misspelt_variable& each : misspelt_variables(environment_names())) {
    log.report_once(severity::warning,
                    "variable " + each.name,
                    fmt::format("the variable {} is set, but nothing reads it; did you mean {}?",
                                each.name,
                                each.nearest));
  }
  constexpr std::string_view interface_variable = "NCCL_SOCKET_IFNAME";
  const std::optional<std::string> list = rendezvous::process_variable(interface_variable);
  if (!list || list->empty()) {
    return;
  }
  std::vector<std::string> present;
  for (const rendezvous::network_port& port : rendezvous::local_ports()) {
    if (std::ranges::find(present, port.interface) == present.end()) {
      present.push_back(port.interface);
    }
  }
  nccl::require_interfaces(interface_variable, *list, present);
}

}  // namespace spark_comm
