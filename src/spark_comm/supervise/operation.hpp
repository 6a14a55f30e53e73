// SPDX-License-Identifier: AGPL-3.0-only
// What an operation is, told in numbers: the vocabulary of the flight record, the mismatch check
// and the error texts. Says nothing about how an operation is launched.
#pragma once

#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/reduce_op.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace spark_comm {

/// What a rank asked for. The numbers are stored in flight records: append, never renumber.
enum class operation_kind : std::uint8_t {
  all_reduce = 1,      ///< Everybody's sum, everywhere.
  reduce = 2,          ///< Everybody's sum, at the root.
  broadcast = 3,       ///< The root's data, everywhere.
  all_gather = 4,      ///< Everybody's data, everywhere.
  reduce_scatter = 5,  ///< Each rank's share of everybody's sum.
  send = 6,            ///< To one peer.
  recv = 7,            ///< From one peer.
  all_to_all = 8,      ///< A share of everybody's data, everywhere.
  barrier = 9,         ///< Nobody leaves before everybody has come.
  group = 10,  ///< The end of a group; `count_elements` holds the number of its collectives.
  all_reduce_rms_norm = 11,  ///< All-reduce, residual add and RMSNorm in one.
};

inline constexpr operation_kind all_operation_kinds[] = {
    operation_kind::all_reduce,
    operation_kind::reduce,
    operation_kind::broadcast,
    operation_kind::all_gather,
    operation_kind::reduce_scatter,
    operation_kind::send,
    operation_kind::recv,
    operation_kind::all_to_all,
    operation_kind::barrier,
    operation_kind::group,
    operation_kind::all_reduce_rms_norm,
};

/// The way an operation goes. The numbers are stored in flight records: append, never renumber.
enum class path_kind : std::uint8_t {
  nccl = 1,            ///< The library's own collective.
  exchange = 2,        ///< Two ranks: grouped send and receive, then a local add.
  exchange_fused = 3,  ///< As `exchange`, with the add and what follows it in one kernel.
  one_shot = 4,        ///< Every rank reads every other's data through mapped memory.
  two_shot = 5,        ///< Reduce-scatter and all-gather through mapped memory.
  one_shot_fused = 6,  ///< As `one_shot`, with what follows the sum in the same kernel.
  local = 7,           ///< Nothing leaves the rank (world of one).
  low_latency = 8,     ///< As `one_shot`, pushed, with data and flag in one word.
};

inline constexpr path_kind all_path_kinds[] = {
    path_kind::nccl,
    path_kind::exchange,
    path_kind::exchange_fused,
    path_kind::one_shot,
    path_kind::two_shot,
    path_kind::one_shot_fused,
    path_kind::local,
    path_kind::low_latency,
};

/// Bits of `operation_record::flags`.
// NOLINTNEXTLINE(performance-enum-size): bits of a 32-bit word
enum class operation_flag : std::uint32_t {
  in_group = 1U << 0U,  ///< A member of a group.
  captured = 1U << 1U,  ///< Recorded into a graph, and not run by this submission.
  uneven = 1U << 2U,    ///< The count may differ between ranks by design (all_to_all with counts).
};

/// One operation as its rank submitted it.
///
/// `sequence` numbers the operations of this rank on this communicator, from 1. Where sends and
/// receives are used it differs between ranks, so what ranks compare is `ordinal`: the number of a
/// collective among collectives, of a send among the sends to that peer, of a receive among the
/// receives from that peer, each from 1.
struct operation_record {
  std::uint64_t sequence = 0;
  std::uint64_t ordinal = 0;  ///< Filled in by `signature_log::append`; 0 if on no lane.
  std::uint64_t count_elements = 0;
  std::uint64_t stream = 0;  ///< The native stream handle as a number.
  std::uint64_t communicator = 0;
  std::uint32_t generation = 0;
  std::int32_t root_or_peer = -1;  ///< -1 where the operation has neither.
  operation_kind kind = operation_kind::all_reduce;
  data_type dtype = data_type::bytes;
  reduce_op op = reduce_op::sum;  ///< Means something for reducing kinds only.
  path_kind path = path_kind::nccl;
  std::uint32_t flags = 0;

  [[nodiscard]] constexpr bool has(operation_flag flag) const noexcept {
    return (flags & static_cast<std::uint32_t>(flag)) != 0;
  }

  constexpr void set(operation_flag flag) noexcept { flags |= static_cast<std::uint32_t>(flag); }

  friend bool operator==(const operation_record&, const operation_record&) = default;
};

static_assert(std::is_trivially_copyable_v<operation_record>);

[[nodiscard]] SPARK_COMM_API std::string_view name_of(operation_kind kind) noexcept;
[[nodiscard]] SPARK_COMM_API std::string_view name_of(path_kind path) noexcept;

/// Reduces elements, so that `op` means something.
[[nodiscard]] SPARK_COMM_API bool is_reducing(operation_kind kind) noexcept;

/// Has a root that all ranks must agree on.
[[nodiscard]] SPARK_COMM_API bool is_rooted(operation_kind kind) noexcept;

/// Concerns two ranks only.
[[nodiscard]] constexpr bool is_point_to_point(operation_kind kind) noexcept {
  return kind == operation_kind::send || kind == operation_kind::recv;
}

/// "all_reduce #7 (4096 x bf16, sum, nccl)": one line for messages.
[[nodiscard]] SPARK_COMM_API std::string describe(const operation_record& record);

}  // namespace spark_comm
