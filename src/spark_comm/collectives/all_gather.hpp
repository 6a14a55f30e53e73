// SPDX-License-Identifier: AGPL-3.0-only
// all_gather: every rank gets the blocks of all ranks, in rank order.
#pragma once

#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm {

/// Gathers each rank's `in` into `out` on every rank.
///
/// Shape: W = world size; in holds `count_elements`, out W x `count_elements`, block r from rank r.
/// In place: in is out + rank x count_elements. Any other overlap is refused.
/// Order: as `all_reduce`.
/// Who: every rank, with the same count, in the same order as its other operations.
/// Throws: as `all_reduce`.
/// Source: ncclAllGather, NCCL 2.28.9.
SPARK_COMM_API void all_gather(communicator& comm,
                               const void* in,
                               void* out,
                               std::size_t count_elements,
                               data_type dtype,
                               cuda::stream_ref s,
                               const call_options& options = {});

/// The same, typed. Throws invalid_argument unless out is W times as long as in.
template <typename T>
void all_gather(communicator& comm,
                device_span<const T> in,
                device_span<T> out,
                cuda::stream_ref s,
                const call_options& options = {}) {
  detail::require_counts(comm,
                         "all_gather",
                         in.count_elements,
                         out.count_elements,
                         static_cast<std::size_t>(comm.world_size()));
  all_gather(comm, in.address, out.address, in.count_elements, data_type_of<T>, s, options);
}

}  // namespace spark_comm
