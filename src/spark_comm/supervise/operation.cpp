// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <fmt/format.h>
#include <string>
#include <string_view>

namespace spark_comm {

std::string_view name_of(operation_kind kind) noexcept {
  switch (kind) {
    case operation_kind::all_reduce:          return "all_reduce";
    case operation_kind::reduce:              return "reduce";
    case operation_kind::broadcast:           return "broadcast";
    case operation_kind::all_gather:          return "all_gather";
    case operation_kind::reduce_scatter:      return "reduce_scatter";
    case operation_kind::send:                return "send";
    case operation_kind::recv:                return "recv";
    case operation_kind::all_to_all:          return "all_to_all";
    case operation_kind::barrier:             return "barrier";
    case operation_kind::group:               return "group";
    case operation_kind::all_reduce_rms_norm: return "all_reduce_rms_norm";
  }
  return "unknown";
}

std::string_view name_of(path_kind path) noexcept {
  switch (path) {
    case path_kind::nccl:           return "nccl";
    case path_kind::exchange:       return "exchange";
    case path_kind::exchange_fused: return "exchange_fused";
    case path_kind::one_shot:       return "one_shot";
    case path_kind::two_shot:       return "two_shot";
    case path_kind::one_shot_fused: return "one_shot_fused";
    case path_kind::local:          return "local";
    case path_kind::low_latency:    return "low_latency";
  }
  return "unknown";
}

bool is_reducing(operation_kind kind) noexcept {
  switch (kind) {
    case operation_kind::all_reduce:
    case operation_kind::reduce:
    case operation_kind::reduce_scatter:
    case operation_kind::all_reduce_rms_norm: return true;
    case operation_kind::broadcast:
    case operation_kind::all_gather:
    case operation_kind::send:
    case operation_kind::recv:
    case operation_kind::all_to_all:
    case operation_kind::barrier:
    case operation_kind::group:               return false;
  }
  return false;
}

bool is_rooted(operation_kind kind) noexcept {
  return kind == operation_kind::reduce || kind == operation_kind::broadcast;
}

std::string describe(const operation_record& record) {
  std::string text = fmt::format("{} #{}", name_of(record.kind), record.sequence);
  if (record.kind == operation_kind::group) {
    return text + fmt::format(" of {} collective{}",
                              record.count_elements,
                              record.count_elements == 1 ? "" : "s");
  }
  if (record.kind == operation_kind::barrier) {
    return text;
  }
  text += fmt::format(" ({} x {}", record.count_elements, name_of(record.dtype));
  if (is_reducing(record.kind)) {
    text += fmt::format(", {}", name_of(record.op));
  }
  if (is_rooted(record.kind)) {
    text += fmt::format(", root {}", record.root_or_peer);
  }
  if (is_point_to_point(record.kind)) {
    text += fmt::format(
        ", {} rank {}", record.kind == operation_kind::send ? "to" : "from", record.root_or_peer);
  }
  text += fmt::format(", {}", name_of(record.path));
  if (record.has(operation_flag::in_group)) {
    text += ", in group";
  }
  if (record.has(operation_flag::captured)) {
    text += ", captured";
  }
  return text + ")";
}

}  // namespace spark_comm
