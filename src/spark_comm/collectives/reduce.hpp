// SPDX-License-Identifier: AGPL-3.0-only
// reduce: the root gets the reduction over all ranks.
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

/// Reduces `in` over all ranks into `out` on the root. `out` may be null on the others.
///
/// Shape: `count_elements` in `in` on all ranks and in `out` on the root; equal or not overlapping.
/// Order: as `all_reduce`.
/// Who: every rank, in the same order as its other operations on this communicator.
/// Throws: as `all_reduce`; invalid_argument for a root outside the world.
/// Numerics: as `all_reduce`, on the root.
/// Source: ncclReduce, NCCL 2.28.9.
SPARK_COMM_API void reduce(communicator& comm,
                           const void* in,
                           void* out,
                           std::size_t count_elements,
                           data_type dtype,
                           reduce_op op,
                           rank_id root,
                           cuda::stream_ref s,
                           const call_options& options = {});

/// The same, typed. `out` may be empty on ranks other than the root.
template <typename T>
void reduce(communicator& comm,
            device_span<const T> in,
            device_span<T> out,
            reduce_op op,
            rank_id root,
            cuda::stream_ref s,
            const call_options& options = {}) {
  if (comm.rank() == root.value) {
    detail::require_counts(comm, "reduce", in.count_elements, out.count_elements);
  }
  reduce(comm, in.address, out.address, in.count_elements, data_type_of<T>, op, root, s, options);
}

}  // namespace spark_comm
