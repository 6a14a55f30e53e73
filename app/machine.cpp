// SPDX-License-Identifier: AGPL-3.0-only
#include "machine.hpp"

#include <cstddef>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sched.h>
#include <string>
#include <string_view>
#include <sys/utsname.h>

namespace spark_comm::app {

std::string model_name(std::string_view cpuinfo) {
  constexpr std::string_view key = "model name";
  const std::size_t at = cpuinfo.find(key);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view line = cpuinfo.substr(at, cpuinfo.find('\n', at) - at);
  const std::size_t colon = line.find(": ");
  return colon == std::string_view::npos ? std::string{} : std::string{line.substr(colon + 2)};
}

machine_info this_machine() {
  machine_info machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.host = names.nodename;
    machine.architecture = names.machine;
    machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  }
  std::ifstream file{"/proc/cpuinfo"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  machine.processor = model_name(text);
  if (machine.processor.empty()) {
    machine.processor = machine.architecture;
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    machine.processors = CPU_COUNT(&allowed);
  }
  return machine;
}

std::string to_text(const machine_info& machine) {
  return fmt::format("{}, {} CPU{}, {}, {}",
                     machine.processor,
                     machine.processors,
                     machine.processors == 1 ? "" : "s",
                     machine.architecture,
                     machine.kernel);
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace spark_comm::app
