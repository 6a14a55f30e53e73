// SPDX-License-Identifier: AGPL-3.0-only
#include "bandwidth.hpp"

#include "operation.hpp"

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace spark_comm::app {

std::optional<double> bus_factor(operation what, int world_size) noexcept {
  if (world_size < 2) {
    return std::nullopt;
  }
  const double ranks = world_size;
  switch (what) {
    case operation::all_reduce:     return 2 * (ranks - 1) / ranks;
    case operation::all_gather:
    case operation::reduce_scatter:
    case operation::all_to_all:     return (ranks - 1) / ranks;
    case operation::reduce:
    case operation::broadcast:
    case operation::send_recv:      return 1;
  }
  return std::nullopt;
}

bandwidth bandwidth_of(operation what,
                       int world_size,
                       std::uint64_t size_bytes,
                       double microseconds) noexcept {
  // Bytes per microsecond are MB/s.
  const double algorithm =
      microseconds > 0 ? static_cast<double>(size_bytes) / microseconds / 1e3 : 0;
  const std::optional<double> factor = bus_factor(what, world_size);
  return {.algorithm = algorithm,
          .bus = factor ? std::optional{algorithm * *factor} : std::nullopt};
}

link_verdict judge_link(double bus_gigabytes, double link_gigabits) {
  const double gigabits = bus_gigabytes * 8;
  const double share = gigabits / link_gigabits;
  std::string text = fmt::format(
      "best busbw {:.2f} GB/s = {:.1f} Gb/s = {:.0f} % of the stated "
      "link of {:g} Gb/s",
      bus_gigabytes,
      gigabits,
      share * 100,
      link_gigabits);
  if (share > 1) {
    text += ": suspect, more than the link can carry";
  } else if (share <= 0.55) {
    text +=
        ": half or less; a port of two halves may have only one in use (NCCL_IB_HCA), or the "
        "data does not go over this link";
  }
  return {.gigabits = gigabits, .share = share, .text = text};
}

}  // namespace spark_comm::app
