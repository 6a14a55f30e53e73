// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/kernels/detail/kernel_table.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace spark_comm {
namespace {

constexpr std::uint64_t kib = 1024;

bool is_through_peer_memory(path_kind path) noexcept {
  switch (path) {
    case path_kind::low_latency:
    case path_kind::one_shot:
    case path_kind::two_shot:
    case path_kind::one_shot_fused: return true;
    case path_kind::nccl:
    case path_kind::exchange:
    case path_kind::exchange_fused:
    case path_kind::local:          return false;
  }
  return false;
}

bool is_for_world(const path_rule& rule, int world_size) noexcept {
  return rule.world_size == path_rule::any_world || rule.world_size == world_size;
}

bool applies(const path_rule& rule,
             const path_query& asked,
             const path_capabilities& there) noexcept {
  return rule.operation == asked.operation && is_for_world(rule, there.world_size) &&
         (rule.reach == world_reach::any || rule.reach == there.reach) &&
         asked.bytes <= rule.max_bytes;
}

}  // namespace

path_table path_table::defaults(runtime_kind kind) {
  using enum operation_kind;
  using enum path_kind;
  if (kind == runtime_kind::host) {
    return path_table{};
  }
  // An exchange moves W - 1 messages a rank and a ring about two, so it is for pairs; it has one
  // trip and a ring has two, so it gains where time is trips and not bytes.
  return path_table{{
      {.operation = all_reduce, .max_bytes = 64 * kib, .path = low_latency},
      {.operation = all_reduce, .world_size = 2, .max_bytes = 1024 * kib, .path = one_shot},
      {.operation = all_reduce, .max_bytes = 128 * kib, .path = one_shot},
      {.operation = all_reduce, .max_bytes = 1024 * kib, .path = two_shot},
      {.operation = all_reduce, .reach = world_reach::far, .max_bytes = 4 * kib, .path = nccl},
      {.operation = all_reduce,
       .world_size = 2,
       .reach = world_reach::far,
       .max_bytes = 256 * kib,
       .path = exchange},
      {.operation = all_reduce_rms_norm, .max_bytes = 256 * kib, .path = one_shot_fused},
      {.operation = all_reduce_rms_norm,
       .world_size = 2,
       .reach = world_reach::far,
       .max_bytes = 256 * kib,
       .path = exchange_fused},
  }};
}

std::uint64_t path_table::hash() const {
  // FNV-1a over the canonical text.
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const char letter : text()) {
    value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return value;
}

bool is_open(path_kind path, const path_query& asked, const path_capabilities& there) noexcept {
  if (path == path_kind::nccl) {
    return true;
  }
  if (asked.op != reduce_op::sum || !kernels::detail::has_kernels(asked.dtype)) {
    return false;
  }
  const bool is_plain = asked.operation == operation_kind::all_reduce;
  const bool is_fused = asked.operation == operation_kind::all_reduce_rms_norm;
  const bool can_exchange = there.world_size == 2 && asked.bytes <= there.exchange_bytes;
  const bool can_stage = there.staging_bytes > 0 && asked.staging_bytes <= there.staging_bytes;
  switch (path) {
    case path_kind::exchange:       return is_plain && can_exchange;
    case path_kind::exchange_fused: return is_fused && can_exchange;
    case path_kind::one_shot:
    case path_kind::two_shot:       return is_plain && can_stage;
    case path_kind::one_shot_fused: return is_fused && can_stage;
    case path_kind::low_latency:
      return is_plain && there.low_latency_bytes > 0 && asked.bytes <= there.low_latency_bytes;
    case path_kind::nccl:
    case path_kind::local: break;
  }
  return false;
}

path_kind choose_path(const path_table& table,
                      const path_query& asked,
                      const path_capabilities& there) noexcept {
  const auto& rules = table.rules();
  const auto chosen = std::ranges::find_if(rules, [&](const path_rule& rule) {
    return applies(rule, asked, there) && is_open(rule.path, asked, there);
  });
  return chosen == rules.end() ? path_kind::nccl : chosen->path;
}

bool uses_peer_memory(const path_table& table, int world_size) noexcept {
  return std::ranges::any_of(table.rules(), [&](const path_rule& rule) {
    return is_for_world(rule, world_size) && is_through_peer_memory(rule.path);
  });
}

bool uses_kernels(const path_table& table, int world_size) noexcept {
  return std::ranges::any_of(table.rules(), [&](const path_rule& rule) {
    return is_for_world(rule, world_size) && rule.path != path_kind::nccl;
  });
}

}  // namespace spark_comm
