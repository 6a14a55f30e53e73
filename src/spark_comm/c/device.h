// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: devices, streams, events and memory. A convenience: engines bring their own,
// since operations take plain addresses and CUDA's own stream handles.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spark_comm_stream spark_comm_stream;
typedef struct spark_comm_event spark_comm_event;
typedef struct spark_comm_device_buffer spark_comm_device_buffer;
typedef struct spark_comm_pinned_buffer spark_comm_pinned_buffer;

/// What is known about a device.
typedef struct spark_comm_device_info {
  size_t struct_size;  ///< In: sizeof the struct. The rest is filled in.
  int32_t ordinal;
  int32_t compute_major;
  int32_t compute_minor;
  int32_t multiprocessors;
  size_t total_bytes;
  size_t free_bytes;
  uint8_t uuid[16];
  char name[128];  ///< Cut where it is longer.
  char pci_bus_id[32];
} spark_comm_device_info;

/// Opens a device; its primary context is kept as long as the device or something made from it
/// lives.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_device_open(const spark_comm_runtime* loaded,
                                                            int32_t ordinal,
                                                            spark_comm_device** device,
                                                            spark_comm_error** failure);
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_device_describe(const spark_comm_device* device,
                                                                spark_comm_device_info* info,
                                                                spark_comm_error** failure);
SPARK_COMM_C_API void spark_comm_device_destroy(spark_comm_device* device);

/// Whether all work on a stream is over. Fails while it is being captured.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_device_poll(const spark_comm_device* device,
                                                            spark_comm_native_stream stream,
                                                            spark_comm_progress* progress,
                                                            spark_comm_error** failure);

/// Waits until it is, at most `limit_ns`. Does not look at any communicator: see
/// spark_comm_communicator_wait.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_device_wait(const spark_comm_device* device,
                                                            spark_comm_native_stream stream,
                                                            int64_t limit_ns,
                                                            spark_comm_progress* progress,
                                                            spark_comm_error** failure);

/// A stream that does not wait for the default stream.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_stream_create(const spark_comm_device* device,
                                                              spark_comm_stream** stream,
                                                              spark_comm_error** failure);
/// What operations take; null (CUDA's default stream) for null.
SPARK_COMM_C_API spark_comm_native_stream spark_comm_stream_native(const spark_comm_stream* stream);
/// Does not wait for work already enqueued.
SPARK_COMM_C_API void spark_comm_stream_destroy(spark_comm_stream* stream);

/// A point in a stream. `is_timed` not 0: spark_comm_event_elapsed works with it.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_event_create(const spark_comm_device* device,
                                                             int32_t is_timed,
                                                             spark_comm_event** event,
                                                             spark_comm_error** failure);
/// Marks the point after all work enqueued on `stream` so far.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_event_record(spark_comm_event* event,
                                                             spark_comm_native_stream stream,
                                                             spark_comm_error** failure);
/// Fails for an event that was never recorded.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_event_poll(const spark_comm_event* event,
                                                           spark_comm_progress* progress,
                                                           spark_comm_error** failure);
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_event_wait(const spark_comm_event* event,
                                                           int64_t limit_ns,
                                                           spark_comm_progress* progress,
                                                           spark_comm_error** failure);
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_event_elapsed(const spark_comm_event* start,
                                                              const spark_comm_event* end,
                                                              float* milliseconds,
                                                              spark_comm_error** failure);
/// Later work on `stream` waits for the latest record of `event`.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_stream_wait_for(const spark_comm_stream* stream,
                                                                const spark_comm_event* event,
                                                                spark_comm_error** failure);
SPARK_COMM_C_API spark_comm_native_event spark_comm_event_native(const spark_comm_event* event);
SPARK_COMM_C_API void spark_comm_event_destroy(spark_comm_event* event);

/// Device memory, aligned to 256 bytes or more.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_device_buffer_allocate(const spark_comm_device* device,
                                  size_t bytes,
                                  spark_comm_device_buffer** buffer,
                                  spark_comm_error** failure);
/// Null and 0 for null.
SPARK_COMM_C_API void* spark_comm_device_buffer_address(const spark_comm_device_buffer* buffer);
SPARK_COMM_C_API size_t spark_comm_device_buffer_size(const spark_comm_device_buffer* buffer);
SPARK_COMM_C_API void spark_comm_device_buffer_destroy(spark_comm_device_buffer* buffer);

/// Page-locked host memory that the device can read and write.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_pinned_buffer_allocate(const spark_comm_device* device,
                                  size_t bytes,
                                  spark_comm_pinned_buffer** buffer,
                                  spark_comm_error** failure);
/// Null and 0 for null.
SPARK_COMM_C_API void* spark_comm_pinned_buffer_address(const spark_comm_pinned_buffer* buffer);
SPARK_COMM_C_API size_t spark_comm_pinned_buffer_size(const spark_comm_pinned_buffer* buffer);
/// The address under which the device sees it.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_pinned_buffer_device_address(
    const spark_comm_pinned_buffer* buffer, uint64_t* address, spark_comm_error** failure);
SPARK_COMM_C_API void spark_comm_pinned_buffer_destroy(spark_comm_pinned_buffer* buffer);

/// Copies between device and host memory in either direction. Order: enqueued on `stream`; pageable
/// host memory may be read or written before the call returns.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_copy_async(const spark_comm_device* device,
                                                           void* to,
                                                           const void* from,
                                                           size_t bytes,
                                                           spark_comm_native_stream stream,
                                                           spark_comm_error** failure);
/// Sets every byte. Order: enqueued on `stream`.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_fill_async(const spark_comm_device* device,
                                                           void* to,
                                                           uint8_t value,
                                                           size_t bytes,
                                                           spark_comm_native_stream stream,
                                                           spark_comm_error** failure);

#ifdef __cplusplus
}
#endif
