// SPDX-License-Identifier: AGPL-3.0-only
// Bandwidths as nccl-tests defines them, so that figures can be laid side by side.
#pragma once

#include "operation.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace spark_comm::app {

/// Bus bandwidth over algorithm bandwidth; empty at world 1, where no bus is involved.
/// Source: nccl-tests, doc/PERFORMANCE.md.
[[nodiscard]] std::optional<double> bus_factor(operation what, int world_size) noexcept;

/// Unit: GB/s, GB = 10^9 bytes. `size_bytes` is the larger buffer of a rank.
struct bandwidth {
  double algorithm = 0;
  std::optional<double> bus;
};

[[nodiscard]] bandwidth bandwidth_of(operation what,
                                     int world_size,
                                     std::uint64_t size_bytes,
                                     double microseconds) noexcept;

/// What a bus bandwidth says about a link of a stated speed.
/// Unit: bus in GB/s, link in Gb/s.
struct link_verdict {
  double gigabits = 0;  ///< The bus bandwidth in Gb/s.
  double share = 0;     ///< Of the link, 1 = all of it.
  std::string text;     ///< One line, with a hint where the share asks for one.
};

[[nodiscard]] link_verdict judge_link(double bus_gigabytes, double link_gigabits);

}  // namespace spark_comm::app
