// SPDX-License-Identifier: AGPL-3.0-only
// Which way a collective goes: a pure choice from what all ranks know alike, never from one rank's
// pointers.
#pragma once

#include <spark_comm/comm/runtime.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace spark_comm {

/// How near the ranks of a world are to each other.
enum class world_reach : std::uint8_t {
  any,   ///< In a rule only: both.
  near,  ///< All on one host.
  far,   ///< On several hosts.
};

/// One line of a table.
struct path_rule {
  static constexpr int any_world = 0;
  static constexpr std::uint64_t any_size = std::numeric_limits<std::uint64_t>::max();

  operation_kind operation = operation_kind::all_reduce;
  int world_size = any_world;
  world_reach reach = world_reach::any;
  std::uint64_t max_bytes = any_size;  ///< Largest message that goes this way.
  path_kind path = path_kind::nccl;

  friend bool operator==(const path_rule&, const path_rule&) = default;
};

/// Rules in order: the first one that applies to an operation, and whose path is open to it, is
/// taken; without any, NCCL.
///
/// As text, one rule a line after a line with name and version; `*` is any, `#` begins a comment:
///
///     spark-comm-paths 1
///     # operation  world  reach  up to bytes  path
///     all_reduce   2      near   65536        low_latency
///     all_reduce   *      *      *            nccl
class SPARK_COMM_API path_table {
 public:
  /// No rule: everything goes by NCCL.
  path_table() = default;

  explicit path_table(std::vector<path_rule> rules) : rules_(std::move(rules)) {}

  /// What was measured for the runtime; the host runtime's own collectives are its fastest way.
  [[nodiscard]] static path_table defaults(runtime_kind kind);

  /// Throws: invalid_argument naming `origin`, the line and what is accepted there.
  [[nodiscard]] static path_table parse(std::string_view text, std::string_view origin);

  /// Throws: system_failed when the file cannot be read; as `parse`.
  [[nodiscard]] static path_table load(const std::string& file);

  [[nodiscard]] const std::vector<path_rule>& rules() const noexcept { return rules_; }

  /// The inverse of `parse`.
  [[nodiscard]] std::string text() const;

  /// Of the rules, whatever comments and blanks stood between them.
  [[nodiscard]] std::uint64_t hash() const;

  friend bool operator==(const path_table&, const path_table&) = default;

 private:
  std::vector<path_rule> rules_;
};

/// What a choice is made from. All ranks have the same.
struct path_query {
  operation_kind operation = operation_kind::all_reduce;
  data_type dtype = data_type::bfloat16;
  reduce_op op = reduce_op::sum;
  std::uint64_t bytes = 0;          ///< Of the message.
  std::uint64_t staging_bytes = 0;  ///< That it takes in a segment; at least `bytes`.
};

/// What was agreed at the join. A limit of 0: not there.
struct path_capabilities {
  int world_size = 1;
  world_reach reach = world_reach::far;
  std::uint64_t exchange_bytes = 0;     ///< Largest message of the exchange paths.
  std::uint64_t staging_bytes = 0;      ///< Largest of one_shot and two_shot.
  std::uint64_t low_latency_bytes = 0;  ///< Largest of low_latency.
};

/// Whether the operation can go this way at all.
[[nodiscard]] SPARK_COMM_API bool is_open(path_kind path,
                                          const path_query& asked,
                                          const path_capabilities& there) noexcept;

/// The way of an operation.
[[nodiscard]] SPARK_COMM_API path_kind choose_path(const path_table& table,
                                                   const path_query& asked,
                                                   const path_capabilities& there) noexcept;

/// Whether a rule for this world goes through memory that ranks map into each other.
[[nodiscard]] SPARK_COMM_API bool uses_peer_memory(const path_table& table,
                                                   int world_size) noexcept;

/// Whether any rule for this world goes another way than NCCL.
[[nodiscard]] SPARK_COMM_API bool uses_kernels(const path_table& table, int world_size) noexcept;

}  // namespace spark_comm
