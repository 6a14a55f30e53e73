// SPDX-License-Identifier: AGPL-3.0-only
// recv: the other half of send.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>

namespace spark_comm {

/// Receives `count_elements` from `peer`, which sends as many.
///
/// Order: enqueued on `s`; `out` is readable by work enqueued on `s` afterwards. Capturable.
/// Who: this rank and `peer`, matched in order; see `send`.
/// Throws: as `send`.
/// Source: ncclRecv, NCCL 2.28.9.
SPARK_COMM_API void recv(communicator& comm,
                         void* out,
                         std::size_t count_elements,
                         data_type dtype,
                         rank_id peer,
                         cuda::stream_ref s,
                         const call_options& options = {});

/// The same, typed.
template <typename T>
void recv(communicator& comm,
          device_span<T> out,
          rank_id peer,
          cuda::stream_ref s,
          const call_options& options = {}) {
  recv(comm, out.address, out.count_elements, data_type_of<T>, peer, s, options);
}

}  // namespace spark_comm
