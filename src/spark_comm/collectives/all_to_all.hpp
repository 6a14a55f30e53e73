// SPDX-License-Identifier: AGPL-3.0-only
// all_to_all: every rank gives every rank a block of its own.
#pragma once

#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>
#include <span>

namespace spark_comm {

/// Block r of `in` goes to rank r, whose block for us arrives in block r of `out`.
///
/// Shape: W = world size; in and out hold W x `count_elements` and do not overlap.
/// Order: as `all_reduce`.
/// Who: every rank, with the same count, in the same order as its other operations.
/// Throws: as `all_reduce`.
/// Source: ncclAlltoAll, NCCL 2.28.9; grouped ncclSend and ncclRecv where the library has none.
SPARK_COMM_API void all_to_all(communicator& comm,
                               const void* in,
                               void* out,
                               std::size_t count_elements,
                               data_type dtype,
                               cuda::stream_ref s,
                               const call_options& options = {});

/// The same, typed. Throws invalid_argument unless both have the same length, a multiple of W.
template <typename T>
void all_to_all(communicator& comm,
                device_span<const T> in,
                device_span<T> out,
                cuda::stream_ref s,
                const call_options& options = {}) {
  const auto blocks = static_cast<std::size_t>(comm.world_size());
  detail::require_counts(comm, "all_to_all", in.count_elements, out.count_elements);
  detail::require_counts(comm, "all_to_all", in.count_elements / blocks, in.count_elements, blocks);
  all_to_all(
      comm, in.address, out.address, in.count_elements / blocks, data_type_of<T>, s, options);
}

/// One rank's part of an all-to-all with counts of its own.
/// Shape: every span has W entries; offsets and counts in elements.
struct all_to_all_layout {
  std::span<const std::size_t> send_counts;
  std::span<const std::size_t> send_offsets;
  std::span<const std::size_t> recv_counts;
  std::span<const std::size_t> recv_offsets;
};

/// With counts: `send_counts[r]` elements at `send_offsets[r]` go to rank r, and so on.
///
/// An empty block is real: it is sent and received, so an idle expert stays in step.
/// Who: every rank; send_counts[r] here equals recv_counts[this rank] on rank r.
/// Throws: as `all_reduce`; invalid_argument when a span has another length than W.
/// Source: grouped ncclSend and ncclRecv, NCCL 2.28.9.
SPARK_COMM_API void all_to_all(communicator& comm,
                               const void* in,
                               void* out,
                               const all_to_all_layout& layout,
                               data_type dtype,
                               cuda::stream_ref s,
                               const call_options& options = {});

}  // namespace spark_comm
