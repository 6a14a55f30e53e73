// SPDX-License-Identifier: AGPL-3.0-only
// all_reduce_overlapped: an all-reduce beside the computation, ordered with it by events alone.
#pragma once

#include <spark_comm/collectives/spans.hpp>
#include <spark_comm/comm/communicator.hpp>
#include <spark_comm/comm/options.hpp>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/device_span.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstddef>
#include <utility>

namespace spark_comm {

/// A result that is under way on a stream of the communicator's own.
class SPARK_COMM_API overlapped_result {
 public:
  overlapped_result(cuda::device device, cuda::event end) noexcept
      : device_(std::move(device)), end_(std::move(end)) {}

  /// Work enqueued on `s` afterwards waits for the result; the host does not.
  /// During a capture this is what brings the fork home: once for every result.
  void join(cuda::stream_ref s) const;

  /// Whether the result is there. Throws: invalid_usage when it was captured.
  [[nodiscard]] progress poll() const { return end_.poll(); }

 private:
  cuda::device device_;
  cuda::event end_;
};

/// `all_reduce` that begins when what is enqueued on `compute` so far is over, and does not hold up
/// what is enqueued there later, until `join`.
///
/// in and out must not be touched before the result is joined. Two run at a time; a third waits for
/// the first. Order: the host never blocks. Capturable.
/// Who, Throws, Numerics: as `all_reduce`; invalid_usage in a group.
[[nodiscard]] SPARK_COMM_API overlapped_result
all_reduce_overlapped(communicator& comm,
                      const void* in,
                      void* out,
                      std::size_t count_elements,
                      data_type dtype,
                      reduce_op op,
                      cuda::stream_ref compute,
                      const call_options& options = {});

/// The same, typed. Throws invalid_argument when the spans differ in length.
template <typename T>
[[nodiscard]] overlapped_result all_reduce_overlapped(communicator& comm,
                                                      device_span<const T> in,
                                                      device_span<T> out,
                                                      reduce_op op,
                                                      cuda::stream_ref compute,
                                                      const call_options& options = {}) {
  detail::require_counts(comm, "all_reduce_overlapped", in.count_elements, out.count_elements);
  return all_reduce_overlapped(
      comm, in.address, out.address, in.count_elements, data_type_of<T>, op, compute, options);
}

/// In place.
template <typename T>
[[nodiscard]] overlapped_result all_reduce_overlapped(communicator& comm,
                                                      device_span<T> in_out,
                                                      reduce_op op,
                                                      cuda::stream_ref compute,
                                                      const call_options& options = {}) {
  return all_reduce_overlapped(comm,
                               in_out.address,
                               in_out.address,
                               in_out.count_elements,
                               data_type_of<T>,
                               op,
                               compute,
                               options);
}

}  // namespace spark_comm
