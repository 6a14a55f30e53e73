// SPDX-License-Identifier: AGPL-3.0-only
// all_reduce: every rank gets the reduction over all ranks.
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

/// Reduces `in` over all ranks into `out` on every rank.
///
/// Shape: in and out hold `count_elements` each, the same number on all ranks; they are equal or do
/// not overlap.
/// Order: enqueued on `s`; `out` is readable by work enqueued on `s` afterwards. Capturable.
/// Who: every rank, in the same order as its other operations on this communicator.
/// Throws: invalid_argument before anything is enqueued (communicator unharmed); invalid_usage from
/// a second thread; the first error of a broken communicator; peer_lost, device_failed (broken).
/// Numerics: equal bits on all ranks. The host runtime adds in rank order, in fp32 for types up to
/// fp32, and rounds once; NCCL's own order and roundings otherwise. Integer sums wrap.
/// Source: ncclAllReduce, NCCL 2.28.9.
SPARK_COMM_API void all_reduce(communicator& comm,
                               const void* in,
                               void* out,
                               std::size_t count_elements,
                               data_type dtype,
                               reduce_op op,
                               cuda::stream_ref s,
                               const call_options& options = {});

/// The same, typed. Throws invalid_argument when the spans differ in length.
template <typename T>
void all_reduce(communicator& comm,
                device_span<const T> in,
                device_span<T> out,
                reduce_op op,
                cuda::stream_ref s,
                const call_options& options = {}) {
  detail::require_counts(comm, "all_reduce", in.count_elements, out.count_elements);
  all_reduce(comm, in.address, out.address, in.count_elements, data_type_of<T>, op, s, options);
}

/// In place.
template <typename T>
void all_reduce(communicator& comm,
                device_span<T> in_out,
                reduce_op op,
                cuda::stream_ref s,
                const call_options& options = {}) {
  all_reduce(
      comm, in_out.address, in_out.address, in_out.count_elements, data_type_of<T>, op, s, options);
}

}  // namespace spark_comm
