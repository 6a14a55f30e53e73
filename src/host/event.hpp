// SPDX-License-Identifier: AGPL-3.0-only
// Events: points in streams that others wait for, or in captured streams, places in a graph.
#pragma once

#include "driver_abi.hpp"
#include "stream.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace spark_comm::host {

struct capture;

/// One record of an event. Never changes its place; recording again makes a new one, so that a wait
/// keeps meaning the record that it was made for.
struct event_record {
  stream_ptr origin;                  ///< null in a graph
  std::uint64_t position = 0;         ///< reached when the stream has finished so many items
  std::atomic<std::int64_t> when{0};  ///< steady clock in ns, for timed events; 0 before
  std::shared_ptr<capture> session;   ///< the capture, or null
  std::vector<std::size_t> nodes;     ///< the place in its graph

  [[nodiscard]] bool is_reached() const noexcept;
};

using event_record_ptr = std::shared_ptr<event_record>;

/// Threads: any.
class event {
 public:
  event(int device, bool is_timed) noexcept : device_(device), is_timed_(is_timed) {}

  [[nodiscard]] int device() const noexcept { return device_; }

  [[nodiscard]] bool is_timed() const noexcept { return is_timed_; }

  /// Null when never recorded.
  [[nodiscard]] event_record_ptr latest() const noexcept {
    const std::lock_guard lock{mutex_};
    return latest_;
  }

  [[nodiscard]] driver::result record(const stream_ptr& on);

 private:
  void set(event_record_ptr record) noexcept {
    const std::lock_guard lock{mutex_};
    latest_ = std::move(record);
  }

  int device_;
  bool is_timed_;
  mutable std::mutex mutex_;
  event_record_ptr latest_;
};

/// invalid_handle when an event is not timed or was never recorded; not_ready before both are
/// reached.
[[nodiscard]] driver::result elapsed_ms(const event& start,
                                        const event& end,
                                        float& milliseconds) noexcept;

/// Later work of `target` waits for `record`, wherever it was made.
[[nodiscard]] driver::result wait_in_stream(const stream_ptr& target,
                                            const event_record_ptr& record);

}  // namespace spark_comm::host
