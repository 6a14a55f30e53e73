// SPDX-License-Identifier: AGPL-3.0-only
// Devices, streams, events and memory.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/device.h>
#include <spark_comm/c/types.h>
#include <spark_comm/cuda/device.hpp>
#include <spark_comm/cuda/event.hpp>
#include <spark_comm/cuda/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using spark_comm::c::created;
using spark_comm::c::guarded;
using spark_comm::c::number_of;
namespace cuda = spark_comm::cuda;

template <std::size_t Size>
void copy_text(std::string_view text, char (&to)[Size]) {
  const std::size_t length = std::min(text.size(), Size - 1);
  *std::copy_n(text.begin(), length, to) = '\0';
}

spark_comm_device_info info_of(const cuda::device& device) {
  const cuda::device_info known = device.info();
  spark_comm_device_info info{};
  info.ordinal = known.ordinal;
  info.compute_major = known.compute_major;
  info.compute_minor = known.compute_minor;
  info.multiprocessors = known.multiprocessors;
  info.total_bytes = known.total_bytes;
  info.free_bytes = device.memory().free_bytes;
  std::ranges::copy(known.uuid, info.uuid);
  copy_text(known.name, info.name);
  copy_text(known.pci_bus_id, info.pci_bus_id);
  return info;
}

}  // namespace

spark_comm_code spark_comm_device_open(const spark_comm_runtime* loaded,
                                       std::int32_t ordinal,
                                       spark_comm_device** device,
                                       spark_comm_error** failure) {
  return created(__func__, device, failure, [&](const auto& check) {
    return cuda::device::open(check.deref(loaded, "the runtime").value.driver(), ordinal);
  });
}

spark_comm_code spark_comm_device_describe(const spark_comm_device* device,
                                           spark_comm_device_info* info,
                                           spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    check.write(info, info_of(check.deref(device, "the device").value), "info");
  });
}

void spark_comm_device_destroy(spark_comm_device* device) {
  delete device;
}

spark_comm_code spark_comm_device_poll(const spark_comm_device* device,
                                       spark_comm_native_stream stream,
                                       spark_comm_progress* progress,
                                       spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    answer = number_of(check.deref(device, "the device").value.poll(stream));
  });
}

spark_comm_code spark_comm_device_wait(const spark_comm_device* device,
                                       spark_comm_native_stream stream,
                                       std::int64_t limit_ns,
                                       spark_comm_progress* progress,
                                       spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    const auto& waiting = check.deref(device, "the device").value;
    answer = number_of(waiting.wait(stream, check.limit(limit_ns, "limit_ns")));
  });
}

spark_comm_code spark_comm_stream_create(const spark_comm_device* device,
                                         spark_comm_stream** stream,
                                         spark_comm_error** failure) {
  return created(__func__, stream, failure, [&](const auto& check) {
    return check.deref(device, "the device").value.create_stream();
  });
}

spark_comm_native_stream spark_comm_stream_native(const spark_comm_stream* stream) {
  return stream == nullptr ? nullptr : stream->value.ref().get();
}

spark_comm_code spark_comm_stream_wait_for(const spark_comm_stream* stream,
                                           const spark_comm_event* event,
                                           spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    const auto& later = check.deref(stream, "the stream").value;
    later.wait_for(check.deref(event, "the event").value);
  });
}

void spark_comm_stream_destroy(spark_comm_stream* stream) {
  delete stream;
}

spark_comm_code spark_comm_event_create(const spark_comm_device* device,
                                        std::int32_t is_timed,
                                        spark_comm_event** event,
                                        spark_comm_error** failure) {
  return created(__func__, event, failure, [&](const auto& check) {
    const auto& owner = check.deref(device, "the device").value;
    return is_timed != 0 ? owner.create_timed_event() : owner.create_event();
  });
}

spark_comm_code spark_comm_event_record(spark_comm_event* event,
                                        spark_comm_native_stream stream,
                                        spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    check.deref(event, "the event").value.record(stream);
  });
}

spark_comm_code spark_comm_event_poll(const spark_comm_event* event,
                                      spark_comm_progress* progress,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    answer = number_of(check.deref(event, "the event").value.poll());
  });
}

spark_comm_code spark_comm_event_wait(const spark_comm_event* event,
                                      std::int64_t limit_ns,
                                      spark_comm_progress* progress,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    spark_comm_progress& answer = check.deref(progress, "progress");
    answer = SPARK_COMM_PENDING;
    const auto& waiting = check.deref(event, "the event").value;
    answer = number_of(waiting.wait(check.limit(limit_ns, "limit_ns")));
  });
}

spark_comm_code spark_comm_event_elapsed(const spark_comm_event* start,
                                         const spark_comm_event* end,
                                         float* milliseconds,
                                         spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    float& answer = check.deref(milliseconds, "milliseconds");
    answer =
        cuda::event::elapsed_ms(check.deref(start, "start").value, check.deref(end, "end").value);
  });
}

spark_comm_native_event spark_comm_event_native(const spark_comm_event* event) {
  return event == nullptr ? nullptr : event->value.get();
}

void spark_comm_event_destroy(spark_comm_event* event) {
  delete event;
}
