// SPDX-License-Identifier: AGPL-3.0-only
// From measured times to the rules of a path table. Pure.
#pragma once

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstdint>
#include <vector>

namespace spark_comm::app {

/// How long an all-reduce of one size took on one path.
struct path_time {
  path_kind path = path_kind::nccl;
  std::uint64_t size_bytes = 0;
  double microseconds = 0;
};

/// The fastest path up to each size at which it changes, for a world on one host; NCCL beyond, and
/// wherever another path gains less than three percent. What was not measured (other worlds, other
/// operations) follows the defaults of the runtime.
[[nodiscard]] path_table tuned_table(const std::vector<path_time>& times,
                                     int world_size,
                                     runtime_kind kind);

}  // namespace spark_comm::app
