// SPDX-License-Identifier: AGPL-3.0-only
#include "event.hpp"

#include "capture.hpp"
#include "driver_abi.hpp"
#include "queue_item.hpp"
#include "stream.hpp"
#include "stream_state.hpp"
#include "task.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

namespace spark_comm::host {

namespace {

task stamp(event_record_ptr record) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  // Relaxed: readers look only after they saw the item's completion, which publishes it.
  record->when.store(std::chrono::nanoseconds{now}.count(), std::memory_order_relaxed);
  co_return;
}

// The stream that waits takes the other one along, so that whoever drives the one need not wait for
// the other's worker to wake up.
task wait_for(event_record_ptr record) {
  co_await until([&record] {
    record->origin->drive(record->position, drive_mode::brief);
    return record->is_reached();
  });
}

}  // namespace

bool event_record::is_reached() const noexcept {
  return origin != nullptr && origin->completed() >= position;
}

driver::result event::record(const stream_ptr& on) {
  if (is_capturing(on)) {
    event_record_ptr place = capture_record(on);
    if (place == nullptr) {
      return driver::stream_capture_invalidated;
    }
    set(std::move(place));
    return driver::success;
  }
  auto fresh = std::make_shared<event_record>();
  fresh->origin = on;
  if (is_timed_) {
    fresh->position = on->push({.make = [fresh] { return stamp(fresh); }});
  } else {
    fresh->position = on->submitted();
  }
  set(std::move(fresh));
  return driver::success;
}

driver::result elapsed_ms(const event& start, const event& end, float& milliseconds) noexcept {
  const event_record_ptr from = start.latest();
  const event_record_ptr to = end.latest();
  if (!start.is_timed() || !end.is_timed() || from == nullptr || to == nullptr) {
    return driver::invalid_handle;
  }
  if (from->session != nullptr || to->session != nullptr) {
    return driver::captured_event;
  }
  if (!from->is_reached() || !to->is_reached()) {
    return driver::not_ready;
  }
  const std::int64_t span =
      to->when.load(std::memory_order_relaxed) - from->when.load(std::memory_order_relaxed);
  constexpr double ns_per_ms = 1e6;
  milliseconds = static_cast<float>(static_cast<double>(span) / ns_per_ms);
  return driver::success;
}

driver::result wait_in_stream(const stream_ptr& target, const event_record_ptr& record) {
  if (record->session != nullptr) {
    return capture_join(target, *record);
  }
  if (is_capturing(target)) {
    return refuse_outside_event(target);
  }
  if (record->origin != target && !record->is_reached()) {
    target->push({.make = [record] { return wait_for(record); }});
  }
  return driver::success;
}

}  // namespace spark_comm::host
