// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/detail/polling.hpp>
#include <spark_comm/cuda/detail/relaxed_capture.hpp>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/driver.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/handles.hpp>
#include <spark_comm/cuda/stream_ref.hpp>

#include <utility>

namespace spark_comm::cuda {
namespace {

progress poll_event(const driver& loaded, abi::event handle) {
  const abi::result code = loaded.table().cuEventQuery(handle);
  if (code == abi::results::not_ready) {
    return progress::pending;
  }
  loaded.check(code, "cuEventQuery");
  return progress::done;
}

}  // namespace

event::event(device owner, unique_event handle)
    : owner_(std::move(owner)), handle_(std::move(handle)) {}

void event::record(stream_ref s) {
  require_handle();
  const driver& loaded = owner_.loaded_driver();
  const device_scope scope{owner_};
  abi::capture_status status = abi::capture_status::none;
  loaded.check(loaded.table().cuStreamIsCapturing(s.get(), &status), "cuStreamIsCapturing");
  loaded.check(loaded.table().cuEventRecord(handle_.get(), s.get()), "cuEventRecord");
  recorded_ =
      status == abi::capture_status::none ? record_kind::in_stream : record_kind::in_capture;
}

progress event::poll() const {
  require_reachable();
  const detail::relaxed_capture relaxed{owner_.loaded_driver()};
  return poll_event(owner_.loaded_driver(), handle_.get());
}

wait_result event::wait(duration limit) const {
  require_reachable();
  const detail::relaxed_capture relaxed{owner_.loaded_driver()};
  return detail::wait_polling([&] { return poll_event(owner_.loaded_driver(), handle_.get()); },
                              limit);
}

float event::elapsed_ms(const event& start, const event& end) {
  for (const event* const point : {&start, &end}) {
    if (point->poll() == progress::pending) {
      throw error{errc::invalid_usage, "an event that is not reached yet has no time"};
    }
  }
  const driver& loaded = start.owner_.loaded_driver();
  float milliseconds = 0;
  loaded.check(loaded.table().cuEventElapsedTime(&milliseconds, start.get(), end.get()),
               "cuEventElapsedTime");
  return milliseconds;
}

void event::require_handle() const {
  if (!handle_) {
    throw error{errc::invalid_usage, "the event was moved from"};
  }
}

void event::require_reachable() const {
  require_handle();
  switch (recorded_) {
    case record_kind::never: throw error{errc::invalid_usage, "the event was never recorded"};
    case record_kind::in_capture:
      // CUDA refuses the question and ends the capture for it.
      throw error{errc::invalid_usage,
                  "the event was recorded while its stream was being captured: the point is in the "
                  "graph and cannot be asked or waited for by the host"};
    case record_kind::in_stream: return;
  }
}

}  // namespace spark_comm::cuda
