// SPDX-License-Identifier: AGPL-3.0-only
// Registered memory, windows, and symmetric memory.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/registration.h>
#include <spark_comm/c/types.h>
#include <spark_comm/comm/memory.hpp>

#include <cstddef>
#include <cstdint>

using spark_comm::c::arguments;
using spark_comm::c::created;
using spark_comm::c::guarded;

spark_comm_code spark_comm_symmetric_buffer_allocate(const spark_comm_runtime* loaded,
                                                     const spark_comm_device* device,
                                                     std::size_t bytes,
                                                     spark_comm_device_buffer** buffer,
                                                     spark_comm_error** failure) {
  return created(__func__, buffer, failure, [&](const arguments& check) {
    return allocate_buffer(check.deref(loaded, "the runtime").value,
                           check.deref(device, "the device").value,
                           bytes,
                           spark_comm::memory_kind::symmetric);
  });
}

spark_comm_code spark_comm_register_buffer(spark_comm_communicator* communicator,
                                           void* address,
                                           std::size_t bytes,
                                           spark_comm_registration** registration,
                                           spark_comm_error** failure) {
  return created(__func__, registration, failure, [&](const arguments& check) {
    return check.deref(communicator, "the communicator").value.register_buffer(address, bytes);
  });
}

spark_comm_code spark_comm_registration_is_effective(const spark_comm_registration* registration,
                                                     std::int32_t* answer,
                                                     spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(answer, "answer") =
        check.deref(registration, "the registration").value.is_effective() ? 1 : 0;
  });
}

spark_comm_code spark_comm_registration_release(spark_comm_registration* registration,
                                                spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(registration, "the registration").value.release();
  });
}

void spark_comm_registration_destroy(spark_comm_registration* registration) {
  delete registration;
}

spark_comm_code spark_comm_register_window(spark_comm_communicator* communicator,
                                           void* address,
                                           std::size_t bytes,
                                           spark_comm_window** window,
                                           spark_comm_error** failure) {
  return created(__func__, window, failure, [&](const arguments& check) {
    return check.deref(communicator, "the communicator").value.register_window(address, bytes);
  });
}

spark_comm_code spark_comm_window_is_effective(const spark_comm_window* window,
                                               std::int32_t* answer,
                                               spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(answer, "answer") = check.deref(window, "the window").value.is_effective() ? 1 : 0;
  });
}

spark_comm_code spark_comm_window_native(const spark_comm_window* window,
                                         void** native,
                                         spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    void*& answer = check.deref(native, "native");
    answer = nullptr;
    answer = check.deref(window, "the window").value.native();
  });
}

spark_comm_code spark_comm_window_release(spark_comm_window* window, spark_comm_error** failure) {
  return guarded(__func__, failure, [&](const arguments& check) {
    check.deref(window, "the window").value.release();
  });
}

void spark_comm_window_destroy(spark_comm_window* window) {
  delete window;
}
