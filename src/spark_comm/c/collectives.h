// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: the operations. Each does what the C++ function of the same name does; its
// header in collectives/ has the whole contract. `options` may be null; counts are in elements.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What a single operation may override.
typedef struct spark_comm_call_options {
  size_t struct_size;
  int64_t deadline_ns;  ///< Limit of this operation; 0: the communicator's.
} spark_comm_call_options;

/// `in` reduced over all ranks into `out` on every rank; in place where both are equal.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_all_reduce(spark_comm_communicator* communicator,
                                                           const void* in,
                                                           void* out,
                                                           size_t count_elements,
                                                           spark_comm_data_type dtype,
                                                           spark_comm_reduce_op op,
                                                           spark_comm_native_stream stream,
                                                           const spark_comm_call_options* options,
                                                           spark_comm_error** failure);

/// The same into `out` of the root alone.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_reduce(spark_comm_communicator* communicator,
                                                       const void* in,
                                                       void* out,
                                                       size_t count_elements,
                                                       spark_comm_data_type dtype,
                                                       spark_comm_reduce_op op,
                                                       int32_t root,
                                                       spark_comm_native_stream stream,
                                                       const spark_comm_call_options* options,
                                                       spark_comm_error** failure);

/// The root's `in` to `out` on every rank.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_broadcast(spark_comm_communicator* communicator,
                                                          const void* in,
                                                          void* out,
                                                          size_t count_elements,
                                                          spark_comm_data_type dtype,
                                                          int32_t root,
                                                          spark_comm_native_stream stream,
                                                          const spark_comm_call_options* options,
                                                          spark_comm_error** failure);

/// Every rank's `count_elements`, in rank order, in `out` of every rank.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_all_gather(spark_comm_communicator* communicator,
                                                           const void* in,
                                                           void* out,
                                                           size_t count_elements,
                                                           spark_comm_data_type dtype,
                                                           spark_comm_native_stream stream,
                                                           const spark_comm_call_options* options,
                                                           spark_comm_error** failure);

/// Block r of the reduction, `count_elements` long, in `out` of rank r.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_reduce_scatter(spark_comm_communicator* communicator,
                          const void* in,
                          void* out,
                          size_t count_elements,
                          spark_comm_data_type dtype,
                          spark_comm_reduce_op op,
                          spark_comm_native_stream stream,
                          const spark_comm_call_options* options,
                          spark_comm_error** failure);

/// To one peer, which receives as many. Sends and receives that wait for each other belong in a
/// group.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_send(spark_comm_communicator* communicator,
                                                     const void* in,
                                                     size_t count_elements,
                                                     spark_comm_data_type dtype,
                                                     int32_t peer,
                                                     spark_comm_native_stream stream,
                                                     const spark_comm_call_options* options,
                                                     spark_comm_error** failure);

/// From one peer.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_recv(spark_comm_communicator* communicator,
                                                     void* out,
                                                     size_t count_elements,
                                                     spark_comm_data_type dtype,
                                                     int32_t peer,
                                                     spark_comm_native_stream stream,
                                                     const spark_comm_call_options* options,
                                                     spark_comm_error** failure);

/// Block r of `in`, `count_elements` long, to rank r.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_all_to_all(spark_comm_communicator* communicator,
                                                           const void* in,
                                                           void* out,
                                                           size_t count_elements,
                                                           spark_comm_data_type dtype,
                                                           spark_comm_native_stream stream,
                                                           const spark_comm_call_options* options,
                                                           spark_comm_error** failure);

/// Each list has an entry for every rank, in elements.
typedef struct spark_comm_all_to_all_layout {
  size_t struct_size;
  const size_t* send_counts;
  const size_t* send_offsets;
  const size_t* recv_counts;
  const size_t* recv_offsets;
} spark_comm_all_to_all_layout;

/// With counts: `send_counts[r]` elements at `send_offsets[r]` to rank r, and so on.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_all_to_all_counts(spark_comm_communicator* communicator,
                             const void* in,
                             void* out,
                             const spark_comm_all_to_all_layout* layout,
                             spark_comm_data_type dtype,
                             spark_comm_native_stream stream,
                             const spark_comm_call_options* options,
                             spark_comm_error** failure);

/// Waits on the host until every rank has called it. A limit that passes is SPARK_COMM_TIMED_OUT,
/// and the communicator is broken.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_barrier(spark_comm_communicator* communicator,
                                                        int64_t limit_ns,
                                                        spark_comm_error** failure);

/// What follows a row-parallel layer: rows x hidden elements, row major.
typedef struct spark_comm_rms_norm_arguments {
  size_t struct_size;
  void* partial;       ///< [rows, hidden] This rank's part of the sum; its content is lost.
  void* residual;      ///< [rows, hidden] In and out.
  const void* weight;  ///< [hidden] Of the norm.
  void* out;           ///< [rows, hidden] Of dtype; fp8 e4m3 where `scales` is given.
  float* scales;       ///< [rows] Null: no quantisation.
  size_t rows;
  size_t hidden;
  spark_comm_data_type dtype;  ///< SPARK_COMM_FLOAT32, _FLOAT16 or _BFLOAT16.
  float epsilon;
} spark_comm_rms_norm_arguments;

/// residual += the sum of partial over all ranks; out = residual normalised by its RMS, times
/// weight.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_all_reduce_rms_norm(spark_comm_communicator* communicator,
                               const spark_comm_rms_norm_arguments* what,
                               spark_comm_native_stream stream,
                               const spark_comm_call_options* options,
                               spark_comm_error** failure);

/// A result that is under way beside the computation.
typedef struct spark_comm_overlapped spark_comm_overlapped;

/// An all-reduce on a stream of the communicator's own, that begins when what is enqueued on
/// `compute` so far is over. `in` and `out` must not be touched before it is joined.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_all_reduce_overlapped(spark_comm_communicator* communicator,
                                 const void* in,
                                 void* out,
                                 size_t count_elements,
                                 spark_comm_data_type dtype,
                                 spark_comm_reduce_op op,
                                 spark_comm_native_stream compute,
                                 const spark_comm_call_options* options,
                                 spark_comm_overlapped** result,
                                 spark_comm_error** failure);
/// Work enqueued on `stream` afterwards waits for the result; the host does not.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_overlapped_join(const spark_comm_overlapped* result,
                                                                spark_comm_native_stream stream,
                                                                spark_comm_error** failure);
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_overlapped_poll(const spark_comm_overlapped* result,
                                                                spark_comm_progress* progress,
                                                                spark_comm_error** failure);
/// Does not wait for it. Null is fine.
SPARK_COMM_C_API void spark_comm_overlapped_destroy(spark_comm_overlapped* result);

#ifdef __cplusplus
}
#endif
