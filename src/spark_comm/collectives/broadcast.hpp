// SPDX-License-Identifier: AGPL-3.0-only
// broadcast: every rank gets what the root has.
#pragma once

#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm {

/// Copies the root's `in` to `out` on every rank. `in` is ignored on ranks other than the root.
///
/// Shape: `count_elements` on all ranks; on the root in and out are equal or do not overlap.
/// Order: as `all_reduce`.
/// Who: every rank, with the same root, in the same order as its other operations.
/// Throws: as `all_reduce`; invalid_argument for a root outside the world.
/// Source: ncclBroadcast, NCCL 2.28.9.
SPARK_COMM_API void broadcast(communicator& comm,
                              const void* in,
                              void* out,
                              std::size_t count_elements,
                              data_type dtype,
                              rank_id root,
                              cuda::stream_ref s,
                              const call_options& options = {});

/// The same, typed.
template <typename T>
void broadcast(communicator& comm,
               device_span<const T> in,
               device_span<T> out,
               rank_id root,
               cuda::stream_ref s,
               const call_options& options = {}) {
  if (comm.rank() == root.value) {
    detail::require_counts(comm, "broadcast", in.count_elements, out.count_elements);
  }
  broadcast(comm, in.address, out.address, out.count_elements, data_type_of<T>, root, s, options);
}

/// In place.
template <typename T>
void broadcast(communicator& comm,
               device_span<T> in_out,
               rank_id root,
               cuda::stream_ref s,
               const call_options& options = {}) {
  broadcast(comm,
            in_out.address,
            in_out.address,
            in_out.count_elements,
            data_type_of<T>,
            root,
            s,
            options);
}

}  // namespace spark_comm
