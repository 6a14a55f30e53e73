// SPDX-License-Identifier: AGPL-3.0-only
#include "info.hpp"

#include "build_info.hpp"
#include "exit_code.hpp"
#include "quantity.hpp"
#include "rank_session.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/nccl/library.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace spark_comm::app {
namespace {

using json = nlohmann::ordered_json;

/// As nvidia-smi writes it: "GPU-8a3b...-...".
std::string uuid_text(const std::array<std::uint8_t, 16>& uuid) {
  std::string text = "GPU-";
  for (std::size_t index = 0; index < uuid.size(); ++index) {
    const bool has_dash = index == 4 || index == 6 || index == 8 || index == 10;
    text += fmt::format("{}{:02x}", has_dash ? "-" : "", uuid.at(index));
  }
  return text;
}

device_fact describe(const cuda::device& device) {
  const cuda::device_info info = device.info();
  const cuda::device::memory_info memory = device.memory();
  return {.ordinal = info.ordinal,
          .name = info.name,
          .uuid = uuid_text(info.uuid),
          .pci_bus_id = info.pci_bus_id,
          .compute_capability = fmt::format("{}.{}", info.compute_major, info.compute_minor),
          .total_bytes = memory.total_bytes,
          .free_bytes = memory.free_bytes};
}

bool is_host(const info_facts& facts) {
  return facts.runtime == name_of(runtime_kind::host);
}

}  // namespace

info_facts gather(const runtime& loaded) {
  const nccl::library& library = loaded.library();
  const int cuda = loaded.driver().version();
  info_facts facts{.runtime = std::string{name_of(loaded.kind())},
                   .description = loaded.description(),
                   .driver_file = loaded.driver().file(),
                   .driver_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10),
                   .nccl_file = library.file(),
                   .nccl_version = nccl::version_text(library.version()),
                   .nccl_build_id = library.build_id(),
                   .capabilities = {},
                   .devices = {}};
  for (const nccl::capability what : nccl::all_capabilities) {
    facts.capabilities.push_back({.name = std::string{name_of(what)},
                                  .is_there = library.supports(what),
                                  .since = nccl::version_text(nccl::version_of(what))});
  }
  for (int ordinal = 0; ordinal < loaded.driver().device_count(); ++ordinal) {
    facts.devices.push_back(describe(cuda::device::open(loaded.driver(), ordinal)));
  }
  return facts;
}

std::string info_text(const info_facts& facts) {
  std::string text = fmt::format("spark-comm {} ({})\n", build_version(), build_commit());
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("{:<13}{}\n", name, value);
  };
  line("runtime", facts.description);
  if (is_host(facts)) {
    line("",
         "No GPU is used. Every operation works, between processes of this machine, on its CPU;");
    line("", "bench, check and the examples run as they are, and their times are the CPU's.");
  }
  line("CUDA driver", fmt::format("{}, {}", facts.driver_version, facts.driver_file));
  line("NCCL", fmt::format("{}, {}", facts.nccl_version, facts.nccl_file));
  line("build id", facts.nccl_build_id.empty() ? "none" : facts.nccl_build_id);
  for (const capability_fact& one : facts.capabilities) {
    line(&one == &facts.capabilities.front() ? "capabilities" : "",
         fmt::format(
             "{:<11} {} (since NCCL {})", one.name, one.is_there ? "yes" : "no ", one.since));
  }
  for (const device_fact& one : facts.devices) {
    line(&one == &facts.devices.front() ? "devices" : "",
         fmt::format("{}: {}, {}, compute {}, {} free of {}",
                     one.ordinal,
                     one.name,
                     one.uuid,
                     one.compute_capability,
                     size_text(one.free_bytes),
                     size_text(one.total_bytes)));
  }
  return text;
}

std::string info_json(const info_facts& facts) {
  json capabilities = json::array();
  for (const capability_fact& one : facts.capabilities) {
    capabilities.push_back({{"name", one.name}, {"supported", one.is_there}, {"since", one.since}});
  }
  json devices = json::array();
  for (const device_fact& one : facts.devices) {
    devices.push_back({{"ordinal", one.ordinal},
                       {"name", one.name},
                       {"uuid", one.uuid},
                       {"pci_bus_id", one.pci_bus_id},
                       {"compute_capability", one.compute_capability},
                       {"total_bytes", one.total_bytes},
                       {"free_bytes", one.free_bytes}});
  }
  const json document = {
      {"schema", "spark-comm/info"},
      {"schema_version", 1},
      {"version", build_version()},
      {"commit", build_commit()},
      {"runtime", facts.runtime},
      {"runtime_description", facts.description},
      {"uses_gpu", !is_host(facts)},
      {"driver", {{"file", facts.driver_file}, {"version", facts.driver_version}}},
      {"nccl",
       {{"file", facts.nccl_file},
        {"version", facts.nccl_version},
        {"build_id", facts.nccl_build_id}}},
      {"capabilities", capabilities},
      {"devices", devices}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

exit_code run_info(const info_options& options) {
  const info_facts facts = gather(load_runtime(options.runtime, options.nccl_library));
  fmt::print("{}", options.as_json ? info_json(facts) : info_text(facts));
  return exit_code::ok;
}

}  // namespace spark_comm::app
