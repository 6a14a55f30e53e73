// SPDX-License-Identifier: AGPL-3.0-only
// Device memory and pinned host memory, and copies between them.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/device.h>
#include <spark_comm/c/types.h>
#include <spark_comm/cuda/memory.hpp>

#include <cstddef>
#include <cstdint>

using spark_comm::c::created;
using spark_comm::c::guarded;
namespace cuda = spark_comm::cuda;

spark_comm_code spark_comm_device_buffer_allocate(const spark_comm_device* device,
                                                  std::size_t bytes,
                                                  spark_comm_device_buffer** buffer,
                                                  spark_comm_error** failure) {
  return created(__func__, buffer, failure, [&](const auto& check) {
    return cuda::device_buffer::allocate(check.deref(device, "the device").value, bytes);
  });
}

void* spark_comm_device_buffer_address(const spark_comm_device_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->value.address();
}

std::size_t spark_comm_device_buffer_size(const spark_comm_device_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->value.size_bytes();
}

void spark_comm_device_buffer_destroy(spark_comm_device_buffer* buffer) {
  delete buffer;
}

spark_comm_code spark_comm_pinned_buffer_allocate(const spark_comm_device* device,
                                                  std::size_t bytes,
                                                  spark_comm_pinned_buffer** buffer,
                                                  spark_comm_error** failure) {
  return created(__func__, buffer, failure, [&](const auto& check) {
    return cuda::pinned_buffer::allocate(check.deref(device, "the device").value, bytes);
  });
}

void* spark_comm_pinned_buffer_address(const spark_comm_pinned_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->value.address();
}

std::size_t spark_comm_pinned_buffer_size(const spark_comm_pinned_buffer* buffer) {
  return buffer == nullptr ? 0 : buffer->value.size_bytes();
}

spark_comm_code spark_comm_pinned_buffer_device_address(const spark_comm_pinned_buffer* buffer,
                                                        std::uint64_t* address,
                                                        spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    std::uint64_t& answer = check.deref(address, "address");
    answer = check.deref(buffer, "the buffer").value.device_address();
  });
}

void spark_comm_pinned_buffer_destroy(spark_comm_pinned_buffer* buffer) {
  delete buffer;
}

spark_comm_code spark_comm_copy_async(const spark_comm_device* device,
                                      void* to,
                                      const void* from,
                                      std::size_t bytes,
                                      spark_comm_native_stream stream,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    copy_async(check.deref(device, "the device").value, to, from, bytes, stream);
  });
}

spark_comm_code spark_comm_fill_async(const spark_comm_device* device,
                                      void* to,
                                      std::uint8_t value,
                                      std::size_t bytes,
                                      spark_comm_native_stream stream,
                                      spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const auto& check) {
    fill_async(check.deref(device, "the device").value, to, value, bytes, stream);
  });
}
