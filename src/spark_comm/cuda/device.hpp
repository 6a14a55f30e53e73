// SPDX-License-Identifier: AGPL-3.0-only
// A device with its primary context, and the scope that makes it current for a few calls.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace spark_comm::cuda {

class stream;
class event;

/// What is known about a device.
struct device_info {
  int ordinal = -1;
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::string pci_bus_id;
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  std::size_t total_bytes = 0;
};

/// A device whose primary context is retained as long as a copy of this object lives.
///
/// No call changes the current device of the calling thread; it is pushed and popped inside.
/// Threads: any.
class SPARK_COMM_API device {
 public:
  /// Throws: invalid_argument "device 3 of 1 visible" when there is no such device; device_failed
  /// when there is none at all.
  [[nodiscard]] static device open(const driver& loaded, int ordinal);

  [[nodiscard]] int ordinal() const noexcept;
  [[nodiscard]] const driver& loaded_driver() const noexcept;
  [[nodiscard]] abi::context context() const noexcept;
  [[nodiscard]] device_info info() const;

  /// A stream that does not wait for the default stream.
  [[nodiscard]] stream create_stream() const;

  /// An event for ordering, without timing.
  [[nodiscard]] event create_event() const;

  /// An event that can be timed.
  [[nodiscard]] event create_timed_event() const;

  /// Whether all work on `s` is over; "not ready" is a value.
  /// Throws: device_failed for any other answer; invalid_usage while `s` is being captured.
  [[nodiscard]] progress poll(stream_ref s) const;

  /// Polls until `s` is drained or the deadline has passed: spins briefly, then sleeps in growing
  /// steps of at most 1 ms.
  [[nodiscard]] wait_result wait(stream_ref s, duration limit) const;

  /// Whether `s` is being captured into a graph.
  [[nodiscard]] bool is_capturing(stream_ref s) const;

  /// Free and total bytes of device memory.
  struct memory_info {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
  };

  [[nodiscard]] memory_info memory() const;

 private:
  struct state;

  explicit device(std::shared_ptr<const state> shared) : state_(std::move(shared)) {}

  std::shared_ptr<const state> state_;
};

/// Makes a device's context current for the calling thread, and puts the old one back, whatever was
/// made current in between. The device outlives the scope. Cost: two questions to the driver, 10 ns
/// each, where the context is current already.
class SPARK_COMM_API device_scope {
 public:
  [[nodiscard]] explicit device_scope(const device& target);
  explicit device_scope(device&& target) = delete;
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  device_scope(device_scope&&) = delete;
  device_scope& operator=(device_scope&&) = delete;
  ~device_scope();

 private:
  const driver* loaded_;
  abi::context former_ = nullptr;
};

}  // namespace spark_comm::cuda
