// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: what all of it shares. Numbers are stable: members are added at the end of a
// list and never renumbered. Struct rules: struct_size is sizeof the struct, and every other field
// left at zero has its default, so that `{.struct_size = sizeof x}` is a complete value.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SPARK_COMM_C_API __attribute__((visibility("default")))
#define SPARK_COMM_C_CHECKED SPARK_COMM_C_API __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/// Answer of every call that can fail. Other values than SPARK_COMM_OK say what went wrong; newer
/// libraries may answer with more of them.
typedef int32_t spark_comm_code;

enum {
  SPARK_COMM_OK = 0,                ///< Done.
  SPARK_COMM_INVALID_ARGUMENT = 1,  ///< A value is wrong by itself; nothing has changed.
  SPARK_COMM_INVALID_USAGE = 2,     ///< Not allowed in this state, thread or process.
  SPARK_COMM_MISMATCH = 3,          ///< Ranks disagree.
  SPARK_COMM_TIMED_OUT = 4,         ///< The deadline passed.
  SPARK_COMM_PEER_LOST = 5,         ///< A peer closed, died or refused.
  SPARK_COMM_ABORTED = 6,           ///< The communicator was aborted.
  SPARK_COMM_NOT_SUPPORTED = 7,     ///< The loaded library or device cannot do it.
  SPARK_COMM_OUT_OF_MEMORY = 8,     ///< Free some memory and try again.
  SPARK_COMM_DEVICE_FAILED = 9,     ///< A CUDA call failed.
  SPARK_COMM_SYSTEM_FAILED = 10,    ///< An operating-system call failed.
  SPARK_COMM_INTERNAL = 11          ///< None of the above.
};

/// What the caller can do about an error.
typedef int32_t spark_comm_recovery;

enum {
  SPARK_COMM_FIX_CALL = 0,        ///< Nothing changed; call again with other values.
  SPARK_COMM_RETRY = 1,           ///< Nothing is broken; the same call may succeed later.
  SPARK_COMM_RECONNECT = 2,       ///< The communicator is broken; reconnecting or joining mends it.
  SPARK_COMM_RESTART_PROCESS = 3  ///< The device context is lost.
};

/// Element type of a buffer.
typedef int32_t spark_comm_data_type;

enum {
  SPARK_COMM_INT8 = 0,
  SPARK_COMM_UINT8 = 1,
  SPARK_COMM_INT32 = 2,
  SPARK_COMM_UINT32 = 3,
  SPARK_COMM_INT64 = 4,
  SPARK_COMM_UINT64 = 5,
  SPARK_COMM_FLOAT16 = 6,
  SPARK_COMM_FLOAT32 = 7,
  SPARK_COMM_FLOAT64 = 8,
  SPARK_COMM_BFLOAT16 = 9,
  SPARK_COMM_FLOAT8_E4M3 = 10,
  SPARK_COMM_FLOAT8_E5M2 = 11,
  SPARK_COMM_BYTES = 255  ///< Opaque: moved, never reduced.
};

/// How elements of several ranks become one.
typedef int32_t spark_comm_reduce_op;

enum {
  SPARK_COMM_SUM = 0,
  SPARK_COMM_PROD = 1,
  SPARK_COMM_MAX = 2,
  SPARK_COMM_MIN = 3,
  SPARK_COMM_AVG = 4
};

/// Answer to "is it finished?".
typedef int32_t spark_comm_progress;

enum {
  SPARK_COMM_PENDING = 0,  ///< Not yet, or not within the limit of a wait: no error.
  SPARK_COMM_DONE = 1      ///< Finished, successfully.
};

/// A number that may be left out.
typedef struct spark_comm_optional {
  int64_t value;
  int64_t is_set;  ///< Not 0: `value` counts.
} spark_comm_optional;

/// CUDA's own handles by their own names: an engine's CUstream or cudaStream_t fits without a cast.
typedef struct CUstream_st* spark_comm_native_stream;
typedef struct CUevent_st* spark_comm_native_event;

typedef struct spark_comm_error spark_comm_error;
typedef struct spark_comm_runtime spark_comm_runtime;
typedef struct spark_comm_device spark_comm_device;
typedef struct spark_comm_communicator spark_comm_communicator;

/// Version of the header, 10000 x major + 100 x minor + patch.
#define SPARK_COMM_VERSION 100

/// Version of the library that was loaded, in the same form.
SPARK_COMM_C_API int32_t spark_comm_version(void);

/// Bytes of one element; 0 for a number that is no data type.
SPARK_COMM_C_API size_t spark_comm_data_type_size(spark_comm_data_type dtype);

/// Short names as the command line spells them ("bf16", "sum"); "unknown" for other numbers.
SPARK_COMM_C_API const char* spark_comm_data_type_name(spark_comm_data_type dtype);
SPARK_COMM_C_API const char* spark_comm_reduce_op_name(spark_comm_reduce_op op);

#ifdef __cplusplus
}
#endif
