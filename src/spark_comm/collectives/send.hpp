// SPDX-License-Identifier: AGPL-3.0-only
// send: one rank gives, one rank receives.
#pragma once

#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>
#include <type_traits>

namespace spark_comm {

/// Sends `count_elements` to `peer`, which receives as many.
///
/// An empty send is real: it pairs with an empty receive, and the pointers may be null.
/// Order: enqueued on `s`; `in` may be overwritten by work enqueued on `s` afterwards. Capturable.
/// Who: this rank and `peer`, matched in order. Put a send and a receive that wait for each other
/// into one `group_scope`.
/// Throws: as `all_reduce`; invalid_argument for a peer outside the world, or for this rank itself
/// outside a group.
/// Source: ncclSend, NCCL 2.28.9.
SPARK_COMM_API void send(communicator& comm,
                         const void* in,
                         std::size_t count_elements,
                         data_type dtype,
                         rank_id peer,
                         cuda::stream_ref s,
                         const call_options& options = {});

/// The same, typed.
template <typename T>
void send(communicator& comm,
          device_span<T> in,
          rank_id peer,
          cuda::stream_ref s,
          const call_options& options = {}) {
  send(comm, in.address, in.count_elements, data_type_of<std::remove_const_t<T>>, peer, s, options);
}

}  // namespace spark_comm
