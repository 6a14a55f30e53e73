// SPDX-License-Identifier: AGPL-3.0-only
// An owned event: a point in a stream that others can wait for.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <cstdint>

namespace spark_comm::cuda {

/// A point in a stream. CUDA calls an event that was never recorded "done"; here it is an error.
class SPARK_COMM_API event {
 public:
  /// Marks the point after all work enqueued on `s` so far. Recording again moves the point.
  void record(stream_ref s);

  /// Whether the latest record has been reached.
  /// Throws: invalid_usage when never recorded, recorded during a capture, or moved from;
  /// device_failed.
  [[nodiscard]] progress poll() const;

  /// As `device::wait`, for this point.
  [[nodiscard]] wait_result wait(duration limit) const;

  [[nodiscard]] bool is_recorded() const noexcept { return recorded_ != record_kind::never; }

  /// Milliseconds between two reached points of timed events.
  /// Throws: invalid_usage when one is not reached; invalid_argument for events without timing.
  [[nodiscard]] static float elapsed_ms(const event& start, const event& end);

  [[nodiscard]] abi::event get() const noexcept { return handle_.get(); }

 private:
  friend class device;

  // Where the latest record is: the host can only wait for one that runs by itself.
  enum class record_kind : std::uint8_t { never, in_stream, in_capture };

  event(device owner, unique_event handle);
  void require_handle() const;
  void require_reachable() const;

  device owner_;
  unique_event handle_;
  record_kind recorded_ = record_kind::never;
};

}  // namespace spark_comm::cuda
