// SPDX-License-Identifier: AGPL-3.0-only
// Which NCCL is there, how many of them, and what it is told behind the program's back.
#include "doctor/checks.hpp"
#include "doctor/finding.hpp"
#include "doctor/snapshot.hpp"

#include <cstddef>
#include <fmt/format.h>
#include <sstream>
#include <string>

namespace spark_comm::app::doctor {
namespace {

constexpr int oldest_version = 21900;
constexpr int first_version_with_nvls_hang = 23004;

void check_builds(const machine_snapshot& machine, findings& out) {
  const nccl_file& first = machine.nccl.front();
  for (std::size_t i = 1; i < machine.nccl.size(); ++i) {
    const nccl_file& other = machine.nccl[i];
    if (other.file == first.file || other.hash == first.hash) {
      continue;
    }
    const bool is_same_number = other.version == first.version;
    out.push_back(
        {.how = grade::warning,
         .check = "nccl.two_builds",
         .seen = fmt::format("{} is {}, {} is {}{}",
                             first.path,
                             first.version,
                             other.path,
                             other.version,
                             is_same_number ? ", and they are different builds" : ""),
         .means = "Which one a program gets depends on how it is started; two ranks with different "
                  "ones have hung after minutes.",
         .remedy = "export SPARK_COMM_NCCL_LIBRARY=" + first.path + " on every machine"});
  }
}

std::string names_in(const std::string& config) {
  std::string names;
  std::istringstream lines{config};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos && line.front() != '#') {
      names += (names.empty() ? "" : ", ") + line.substr(0, equals);
    }
  }
  return names;
}

void check_nvls(const machine_snapshot& machine, findings& out) {
  const std::string asked = machine.variable("NCCL_NVLS_ENABLE");
  const int version = version_number(machine.nccl.front().version);
  if (machine.has_nvswitch || asked == "0") {
    return;
  }
  if (asked == "1") {
    out.push_back({.how = grade::warning,
                   .check = "nccl.nvls",
                   .seen = "NCCL_NVLS_ENABLE=1 on a machine without an NVLink switch",
                   .means = "There is nothing to offload to, and an init that tries can hang.",
                   .remedy = "export NCCL_NVLS_ENABLE=0"});
  } else if (version >= first_version_with_nvls_hang) {
    out.push_back({.how = grade::warning,
                   .check = "nccl.nvls",
                   .seen = fmt::format("NCCL {} on a machine without an NVLink switch, with NVLS "
                                       "not switched off",
                                       machine.nccl.front().version),
                   .means = "From 2.30.4 on, jobs on such machines have hung while loading.",
                   .remedy = "export NCCL_NVLS_ENABLE=0"});
  }
}

}  // namespace

findings check_nccl(const machine_snapshot& machine) {
  findings out;
  for (const auto& [path, text] : machine.config_files) {
    if (const std::string names = names_in(text); !names.empty()) {
      out.push_back(
          {.how = grade::warning,
           .check = "nccl.conf",
           .seen = fmt::format("{} sets {}", path, names),
           .means = "Every NCCL program of this machine obeys it, unseen by whoever starts "
                    "it; leftovers of another network make links slow or unusable.",
           .remedy = fmt::format("read it, and if nobody needs it: sudo mv {0} {0}.off", path)});
    }
  }
  if (machine.gpus.empty()) {
    return out;  // the host runtime brings its own
  }
  if (machine.nccl.empty()) {
    out.push_back({.how = grade::problem,
                   .check = "nccl.missing",
                   .seen = "there are GPUs, but no libnccl.so.2 where the loader looks",
                   .means = "automatic takes the host runtime, and the GPUs stay idle.",
                   .remedy =
                       "sudo apt install libnccl2, or export SPARK_COMM_NCCL_LIBRARY=/path/to/"
                       "libnccl.so.2"});
    return out;
  }
  if (const int version = version_number(machine.nccl.front().version);
      version != 0 && version < oldest_version) {
    out.push_back({.how = grade::problem,
                   .check = "nccl.too_old",
                   .seen = fmt::format(
                       "NCCL {} at {}", machine.nccl.front().version, machine.nccl.front().path),
                   .means = "spark_comm needs 2.19 or newer.",
                   .remedy = "sudo apt install --only-upgrade libnccl2"});
  }
  check_builds(machine, out);
  check_nvls(machine, out);
  return out;
}

}  // namespace spark_comm::app::doctor
