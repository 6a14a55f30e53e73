// SPDX-License-Identifier: AGPL-3.0-only
// reduce_scatter: every rank gets its block of the reduction over all ranks.
#pragma once

#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm {

/// Reduces `in` over all ranks and leaves block `rank` of the result in `out`.
///
/// Shape: W = world size; out holds `count_elements`, in W x `count_elements`.
/// In place: out is in + rank x count_elements. Any other overlap is refused.
/// Order: as `all_reduce`.
/// Who: every rank, with the same count, in the same order as its other operations.
/// Throws: as `all_reduce`.
/// Numerics: as `all_reduce`.
/// Source: ncclReduceScatter, NCCL 2.28.9.
SPARK_COMM_API void reduce_scatter(communicator& comm,
                                   const void* in,
                                   void* out,
                                   std::size_t count_elements,
                                   data_type dtype,
                                   reduce_op op,
                                   cuda::stream_ref s,
                                   const call_options& options = {});

/// The same, typed. Throws invalid_argument unless in is W times as long as out.
template <typename T>
void reduce_scatter(communicator& comm,
                    device_span<const T> in,
                    device_span<T> out,
                    reduce_op op,
                    cuda::stream_ref s,
                    const call_options& options = {}) {
  detail::require_counts(comm,
                         "reduce_scatter",
                         out.count_elements,
                         in.count_elements,
                         static_cast<std::size_t>(comm.world_size()));
  reduce_scatter(
      comm, in.address, out.address, out.count_elements, data_type_of<T>, op, s, options);
}

}  // namespace spark_comm
