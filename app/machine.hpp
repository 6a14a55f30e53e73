// SPDX-License-Identifier: AGPL-3.0-only
// The machine that a figure was taken on.
#pragma once

#include <string>
#include <string_view>

namespace spark_comm::app {

struct machine_info {
  std::string host;
  std::string processor;     ///< Model name, or the architecture where the kernel has no name.
  std::string architecture;  ///< "x86_64", "aarch64".
  std::string kernel;        ///< "Linux 6.1.0".
  int processors = 0;        ///< That this process may run on.
};

[[nodiscard]] machine_info this_machine();

/// "AMD EPYC 7B13, 2 CPUs, x86_64, Linux 6.1.0".
[[nodiscard]] std::string to_text(const machine_info& machine);

/// The first "model name" in the text of /proc/cpuinfo; empty when it has none.
[[nodiscard]] std::string model_name(std::string_view cpuinfo);

/// Now, in UTC: "2026-12-01T05:00:00Z".
[[nodiscard]] std::string utc_now();

}  // namespace spark_comm::app
