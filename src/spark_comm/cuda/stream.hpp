// SPDX-License-Identifier: AGPL-3.0-only
// An owned stream.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

namespace spark_comm::cuda {

/// Work in order on one device. Destroying it does not wait for work already enqueued.
class SPARK_COMM_API stream {
 public:
  /// Throws: invalid_usage when moved from.
  [[nodiscard]] stream_ref ref() const;

  operator stream_ref() const { return ref(); }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const device& owner() const noexcept { return owner_; }

  /// See `device::poll`.
  [[nodiscard]] progress poll() const;

  /// See `device::wait`.
  [[nodiscard]] wait_result wait(duration limit) const;

  /// Later work on this stream waits for the latest record of `e`.
  /// Throws: invalid_usage for an event that was never recorded.
  void wait_for(const event& e) const;

  /// Runs `function(user_data)` on a thread of the driver, in stream order. It must not call CUDA.
  void launch_host(abi::host_function function, void* user_data) const;

 private:
  friend class device;
  stream(device owner, unique_stream handle);

  device owner_;
  unique_stream handle_;
};

}  // namespace spark_comm::cuda
