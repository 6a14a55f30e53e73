// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: memory that is registered with a communicator, windows, and the memory that
// windows are made of. Each does what comm/registration.hpp says, and outlives a reconnect.
#pragma once

#include <spark_comm/c/device.h>
#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct spark_comm_registration spark_comm_registration;
typedef struct spark_comm_window spark_comm_window;

/// Device memory of NCCL's, which other ranks can map; by itself it makes no window.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_symmetric_buffer_allocate(const spark_comm_runtime* loaded,
                                     const spark_comm_device* device,
                                     size_t bytes,
                                     spark_comm_device_buffer** buffer,
                                     spark_comm_error** failure);

/// Registers memory, now and in every later generation. Release it before the memory is freed. Who:
/// every rank that passes a registered buffer to a collective does, or none.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_register_buffer(spark_comm_communicator* communicator,
                           void* address,
                           size_t bytes,
                           spark_comm_registration** registration,
                           spark_comm_error** failure);
/// `answer` becomes 0 where NCCL took no notice of it, or the communicator is not ready, else 1.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_registration_is_effective(
    const spark_comm_registration* registration, int32_t* answer, spark_comm_error** failure);
/// Takes it back; again, it does nothing. Fails, and does nothing, while operations are
/// outstanding.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_registration_release(spark_comm_registration* registration, spark_comm_error** failure);
/// One that was not released is, and what goes wrong is reported. Null is fine.
SPARK_COMM_C_API void spark_comm_registration_destroy(spark_comm_registration* registration);

/// Makes memory a window that kernels of all ranks reach by its offset. Who: every rank, in the
/// same order, with the same size; a failure other than SPARK_COMM_INVALID_ARGUMENT and
/// SPARK_COMM_NOT_SUPPORTED breaks the communicator.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_register_window(spark_comm_communicator* communicator,
                           void* address,
                           size_t bytes,
                           spark_comm_window** window,
                           spark_comm_error** failure);
/// As for a registration.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_window_is_effective(const spark_comm_window* window,
                                                                    int32_t* answer,
                                                                    spark_comm_error** failure);
/// NCCL's handle, for kernels that use its device interface; null where it made none. Valid in the
/// generation in which it was asked for.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_window_native(const spark_comm_window* window,
                                                              void** native,
                                                              spark_comm_error** failure);
/// As for a registration; no rank may use it any more.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_window_release(spark_comm_window* window,
                                                               spark_comm_error** failure);
/// As for a registration. Null is fine.
SPARK_COMM_C_API void spark_comm_window_destroy(spark_comm_window* window);

#ifdef __cplusplus
}
#endif
