// SPDX-License-Identifier: AGPL-3.0-only
// `info`: what is there on this machine, what was loaded, and what therefore works.
#pragma once

#include "exit_code.hpp"

#include <spark_comm/comm/runtime.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace spark_comm::app {

struct info_options {
  runtime_kind runtime = runtime_kind::automatic;
  std::string nccl_library;
  bool as_json = false;
};

/// A capability of the loaded NCCL.
struct capability_fact {
  std::string name;
  bool is_there = false;
  std::string since;  ///< NCCL version that brought it.
};

struct device_fact {
  int ordinal = 0;
  std::string name;
  std::string uuid;
  std::string pci_bus_id;
  std::string compute_capability;
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
};

/// Everything that is shown, apart from how.
struct info_facts {
  std::string runtime;
  std::string description;
  std::string driver_file;
  std::string driver_version;
  std::string nccl_file;
  std::string nccl_version;
  std::string nccl_build_id;
  std::vector<capability_fact> capabilities;
  std::vector<device_fact> devices;
};

[[nodiscard]] info_facts gather(const runtime& loaded);
[[nodiscard]] std::string info_text(const info_facts& facts);
[[nodiscard]] std::string info_json(const info_facts& facts);

/// Throws: failure; spark_comm::error when the runtime asked for is not there.
[[nodiscard]] exit_code run_info(const info_options& options);

}  // namespace spark_comm::app
