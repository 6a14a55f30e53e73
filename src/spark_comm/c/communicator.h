// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: a rank's place in a group of ranks, from joining to the end. The operations are
// in collectives.h.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A rank's place, and where the ranks meet.
typedef struct spark_comm_world {
  size_t struct_size;
  const char* address;  ///< `host:port`, `[ipv6]:port` or `file:///path`; rank 0 listens there.
  int32_t rank;
  int32_t world_size;
} spark_comm_world;

/// Whether a communicator is supervised.
enum {
  SPARK_COMM_SUPERVISION_DEFAULT = 0,  ///< SPARK_COMM_SUPERVISION, else on.
  SPARK_COMM_SUPERVISION_ON = 1,       ///< Heartbeats, deadlines, flight record.
  SPARK_COMM_SUPERVISION_OFF = 2       ///< None of them.
};

/// When ranks compare what they issue.
enum {
  SPARK_COMM_MISMATCH_DEFAULT = 0,     ///< SPARK_COMM_MISMATCH_CHECK, else in the background.
  SPARK_COMM_MISMATCH_BACKGROUND = 1,  ///< With every heartbeat.
  SPARK_COMM_MISMATCH_STRICT = 2,      ///< Before every launch; slow, for debugging.
  SPARK_COMM_MISMATCH_OFF = 3          ///< Never.
};

/// How to join. A field left at zero or null has the default named after the colon; "environment"
/// is the variable that the C++ header of the option names.
typedef struct spark_comm_join_options {
  size_t struct_size;
  const char* name;               ///< In errors and traces: "world".
  int64_t deadline_ns;            ///< By when every rank has to be there: 30 s.
  int64_t operation_deadline_ns;  ///< Default limit of an operation: 60 s.
  int64_t abort_deadline_ns;      ///< Limit of a native abort: 1.5 s.
  spark_comm_optional device;     ///< Ordinal: rank modulo the number of devices.
  int32_t share_device;           ///< Not 0: two ranks may use one device.
  int32_t supervision;            ///< SPARK_COMM_SUPERVISION_*.
  int32_t mismatch_check;         ///< SPARK_COMM_MISMATCH_*.
  int32_t path_max_streams;       ///< Streams with messages off NCCL's way: 4.
  const char* key;                ///< What ranks prove to each other: environment.
  const char* key_file;           ///< The file that holds it; not together with `key`.
  int64_t heartbeat_interval_ns;  ///< How often ranks tell where they are: environment.
  int64_t silence_limit_ns;       ///< How long a peer may say nothing: environment.
  const char* record_directory;   ///< Where flight records are kept, "" for memory: environment.
  size_t record_capacity;         ///< Operations that a flight record holds: environment.
  const char* path_table_file;    ///< Written by `spark-comm tune`: environment.
  const char* path_table;         ///< The text of a table, in place of the file: none.
  spark_comm_optional path_max_bytes;  ///< Largest message off NCCL's way: 1 MiB.
  spark_comm_optional nccl_min_ctas;   ///< Here and below: NCCL's own default.
  spark_comm_optional nccl_max_ctas;
  spark_comm_optional nccl_cga_cluster_size;
  spark_comm_optional nccl_traffic_class;
  spark_comm_optional nccl_channels_per_net_peer;
  const char* nccl_net_name;
  /// Called on rank 0 once it listens, from another thread; the address has the real port.
  void (*on_listening)(void* data, const char* address);
  void* on_listening_data;
  int32_t replaces_lost_rank;  ///< Not 0: this process comes in the place of a rank that was lost.
} spark_comm_join_options;

/// Where a communicator stands.
typedef int32_t spark_comm_state;

enum {
  SPARK_COMM_STATE_JOINING = 0,  ///< Meeting the other ranks; no operation yet.
  SPARK_COMM_STATE_READY = 1,    ///< Operations may be submitted.
  SPARK_COMM_STATE_BROKEN = 2,   ///< Something failed; the first error is kept.
  SPARK_COMM_STATE_ABORTED = 3,  ///< Ended at once.
  SPARK_COMM_STATE_CLOSED = 4    ///< Ended in order.
};

/// Joins and returns when every rank is there. `place` null: from the first launcher whose
/// environment variables are complete, without any rank 0 of 1. `options` may be null. Who: every
/// rank.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_join(const spark_comm_runtime* loaded,
                             const spark_comm_world* place,
                             const spark_comm_join_options* options,
                             spark_comm_communicator** communicator,
                             spark_comm_error** failure);

/// The same without waiting: the state is SPARK_COMM_STATE_JOINING; ask
/// spark_comm_communicator_poll_join.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_start_join(const spark_comm_runtime* loaded,
                                   const spark_comm_world* place,
                                   const spark_comm_join_options* options,
                                   spark_comm_communicator** communicator,
                                   spark_comm_error** failure);

/// Whether the join is over. Fails as the join would have; the communicator is to be destroyed
/// then.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_poll_join(spark_comm_communicator* communicator,
                                  spark_comm_progress* progress,
                                  spark_comm_error** failure);

/// -1 for null.
SPARK_COMM_C_API int32_t spark_comm_communicator_rank(const spark_comm_communicator* communicator);
/// 0 for null.
SPARK_COMM_C_API int32_t
spark_comm_communicator_world_size(const spark_comm_communicator* communicator);
/// "" for null. Lives as long as the communicator.
SPARK_COMM_C_API const char* spark_comm_communicator_name(
    const spark_comm_communicator* communicator);
/// SPARK_COMM_STATE_CLOSED for null. Threads: any.
SPARK_COMM_C_API spark_comm_state
spark_comm_communicator_state(const spark_comm_communicator* communicator);
/// Number of the last operation submitted; 0 before the first.
SPARK_COMM_C_API uint64_t
spark_comm_communicator_sequence(const spark_comm_communicator* communicator);
/// How often it has been connected, counting from 1; 0 for null.
SPARK_COMM_C_API uint64_t
spark_comm_communicator_generation(const spark_comm_communicator* communicator);
/// Its device, borrowed: not to be destroyed, valid as long as the communicator. Null for null.
SPARK_COMM_C_API const spark_comm_device* spark_comm_communicator_device(
    const spark_comm_communicator* communicator);
SPARK_COMM_C_API const char* spark_comm_state_name(spark_comm_state state);

/// The first error that broke it, to be destroyed by the caller; null while it is healthy.
/// Threads: any.
SPARK_COMM_C_API spark_comm_error* spark_comm_communicator_last_error(
    const spark_comm_communicator* communicator);

/// Waits until everything enqueued on `stream` is over, and fails as soon as the communicator does.
/// A limit that passes is SPARK_COMM_PENDING and breaks nothing.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_wait(spark_comm_communicator* communicator,
                             spark_comm_native_stream stream,
                             int64_t limit_ns,
                             spark_comm_progress* progress,
                             spark_comm_error** failure);

/// How to reconnect.
typedef struct spark_comm_reconnect_options {
  size_t struct_size;
  int64_t deadline_ns;     ///< By when every rank has to be there: 30 s.
  int32_t survivors_only;  ///< Not 0: with those alone that are left, numbered anew in their order.
} spark_comm_reconnect_options;

/// Connects anew, in the next generation: the communicator, its memory, streams and registrations
/// stay, graphs that hold its operations do not. Else a new process joins in each lost rank's
/// place, with `replaces_lost_rank`. `options` may be null. Who: every rank that is left.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_reconnect(spark_comm_communicator* communicator,
                                  const spark_comm_reconnect_options* options,
                                  spark_comm_error** failure);

/// Ends it in order. Who: every rank. Closing again does nothing.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_communicator_close(
    spark_comm_communicator* communicator, int64_t limit_ns, spark_comm_error** failure);

/// Ends it at once, within its abort deadline. Threads: any. Null is fine.
SPARK_COMM_C_API void spark_comm_communicator_abort(spark_comm_communicator* communicator);

/// One that was not closed is aborted, and that is reported. Null is fine.
SPARK_COMM_C_API void spark_comm_communicator_destroy(spark_comm_communicator* communicator);

#ifdef __cplusplus
}
#endif
