// SPDX-License-Identifier: AGPL-3.0-only
#include "tune_rules.hpp"

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace spark_comm::app {
namespace {

// Less is noise, and NCCL needs no buffers.
constexpr double least_gain = 1.03;

path_kind fastest(const std::vector<path_time>& times) {
  const auto best = std::ranges::min_element(times, {}, &path_time::microseconds);
  const auto nccl = std::ranges::find(times, path_kind::nccl, &path_time::path);
  const bool is_gain = nccl == times.end() || nccl->microseconds > least_gain * best->microseconds;
  return is_gain ? best->path : path_kind::nccl;
}

}  // namespace

path_table tuned_table(const std::vector<path_time>& times, int world_size, runtime_kind kind) {
  std::map<std::uint64_t, std::vector<path_time>> by_size;
  for (const path_time& each : times) {
    by_size[each.size_bytes].push_back(each);
  }
  std::vector<path_rule> rules;
  const path_rule common{.operation = operation_kind::all_reduce,
                         .world_size = world_size,
                         .reach = world_reach::near};
  for (const auto& [size_bytes, measured] : by_size) {
    const path_kind path = fastest(measured);
    if (rules.empty() || rules.back().path != path) {
      rules.push_back(common);
      rules.back().path = path;
    }
    rules.back().max_bytes = size_bytes;
  }
  rules.push_back(common);  // NCCL beyond
  const path_table defaults = path_table::defaults(kind);
  rules.insert(rules.end(), defaults.rules().begin(), defaults.rules().end());
  return path_table{rules};
}

}  // namespace spark_comm::app
