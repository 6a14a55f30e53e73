// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: streams and events.
#include "api_guard.hpp"
#include "capture.hpp"
#include "context.hpp"
#include "driver_abi.hpp"
#include "event.hpp"
#include "exports.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

#include <cstdint>
#include <memory>

namespace spark_comm::host {

namespace {

// Runs `body(event)` for an event handle that is live.
template <typename Body>
driver::result event_call(const char* name, driver::event handle, const Body& body) noexcept {
  return driver_call(name, [&] {
    const std::shared_ptr<event> found = process().events.find(handle);
    return found == nullptr ? driver::invalid_handle : body(*found);
  });
}

// Asking for the state of a captured stream breaks its capture; asking for any other is unsafe.
driver::result permit_stream_inquiry(const stream_ptr& target) noexcept {
  if (is_capturing(target)) {
    invalidate_capture(target);
    return driver::stream_capture_unsupported;
  }
  return permit_unsafe_call();
}

// The same for an event; `record` is null when it was never recorded.
driver::result permit_event_inquiry(const event_record_ptr& record) noexcept {
  if (record != nullptr && record->session != nullptr) {
    return refuse_captured_event(*record);
  }
  return permit_unsafe_call();
}

}  // namespace

extern "C" {

driver::result cuStreamCreate(driver::stream* stream_handle, unsigned int flags) {
  return context_call(__func__, [&](int device) {
    if (stream_handle == nullptr || (flags & ~driver::stream_non_blocking) != 0) {
      return driver::invalid_value;
    }
    auto made = std::make_shared<stream>(device, flags, false);
    *stream_handle = static_cast<driver::stream>(process().streams.insert(std::move(made)));
    return driver::success;
  });
}

driver::result cuStreamDestroy_v2(driver::stream handle) {
  return driver_call(__func__, [&] {
    const stream_ptr target = process().streams.remove(handle);
    if (target == nullptr) {
      return driver::invalid_handle;
    }
    abandon_capture(target);
    if (target->completed() < target->submitted()) {
      process().closing.add(target);
    }
    target->close();
    return driver::success;
  });
}

driver::result cuStreamSynchronize(driver::stream handle) {
  return stream_call(__func__, handle, [](const stream_ptr& target) {
    const driver::result permitted = permit_stream_inquiry(target);
    if (permitted == driver::success) {
      target->wait(target->submitted());
    }
    return permitted;
  });
}

driver::result cuStreamQuery(driver::stream handle) {
  return stream_call(__func__, handle, [](const stream_ptr& target) {
    const driver::result permitted = permit_stream_inquiry(target);
    if (permitted != driver::success) {
      return permitted;
    }
    const std::uint64_t position = target->submitted();
    target->drive(position, drive_mode::brief);
    return target->completed() >= position ? driver::success : driver::not_ready;
  });
}

driver::result cuStreamWaitEvent(driver::stream handle,
                                 driver::event event_handle,
                                 unsigned int flags) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    const std::shared_ptr<event> awaited = process().events.find(event_handle);
    if (awaited == nullptr) {
      return driver::invalid_handle;
    }
    if (flags != 0) {
      return driver::invalid_value;
    }
    const event_record_ptr record = awaited->latest();
    return record == nullptr ? driver::success : wait_in_stream(target, record);
  });
}

driver::result cuStreamGetCtx(driver::stream handle, driver::context* context) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (context == nullptr) {
      return driver::invalid_value;
    }
    *context = context_of(target->device());
    return driver::success;
  });
}

driver::result cuStreamGetId(driver::stream handle, unsigned long long* id) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (id == nullptr) {
      return driver::invalid_value;
    }
    *id = target->id();
    return driver::success;
  });
}

driver::result cuEventCreate(driver::event* event_handle, unsigned int flags) {
  constexpr unsigned int known_flags = driver::event_blocking_sync | driver::event_disable_timing;
  return context_call(__func__, [&](int device) {
    if ((flags & driver::event_interprocess) != 0) {
      return driver::not_supported;
    }
    if (event_handle == nullptr || (flags & ~known_flags) != 0) {
      return driver::invalid_value;
    }
    const bool is_timed = (flags & driver::event_disable_timing) == 0;
    auto made = std::make_shared<event>(device, is_timed);
    *event_handle = static_cast<driver::event>(process().events.insert(std::move(made)));
    return driver::success;
  });
}

driver::result cuEventDestroy_v2(driver::event handle) {
  return driver_call(__func__, [&] {
    return process().events.remove(handle) == nullptr ? driver::invalid_handle : driver::success;
  });
}

driver::result cuEventRecord(driver::event handle, driver::stream stream_handle) {
  return stream_call(__func__, stream_handle, [&](const stream_ptr& on) {
    const std::shared_ptr<event> recorded = process().events.find(handle);
    if (recorded == nullptr || recorded->device() != on->device()) {
      return driver::invalid_handle;
    }
    return recorded->record(on);
  });
}

driver::result cuEventQuery(driver::event handle) {
  return event_call(__func__, handle, [](const event& asked) {
    const event_record_ptr record = asked.latest();
    const driver::result permitted = permit_event_inquiry(record);
    if (permitted != driver::success || record == nullptr) {
      return permitted;
    }
    record->origin->drive(record->position, drive_mode::brief);
    return record->is_reached() ? driver::success : driver::not_ready;
  });
}

driver::result cuEventSynchronize(driver::event handle) {
  return event_call(__func__, handle, [](const event& asked) {
    const event_record_ptr record = asked.latest();
    const driver::result permitted = permit_event_inquiry(record);
    if (permitted == driver::success && record != nullptr) {
      record->origin->wait(record->position);
    }
    return permitted;
  });
}

driver::result cuEventElapsedTime(float* milliseconds,
                                  driver::event start_handle,
                                  driver::event end_handle) {
  return driver_call(__func__, [&] {
    const std::shared_ptr<event> start = process().events.find(start_handle);
    const std::shared_ptr<event> end = process().events.find(end_handle);
    if (start == nullptr || end == nullptr) {
      return driver::invalid_handle;
    }
    if (milliseconds == nullptr) {
      return driver::invalid_value;
    }
    return elapsed_ms(*start, *end, *milliseconds);
  });
}

}  // extern "C"

}  // namespace spark_comm::host
