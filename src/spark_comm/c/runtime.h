// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: which driver and NCCL a program runs on, and what these can do.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Which runtime to load.
typedef int32_t spark_comm_runtime_kind;

enum {
  SPARK_COMM_RUNTIME_AUTOMATIC = 0,  ///< NVIDIA's if all of it is there, else the host runtime.
  SPARK_COMM_RUNTIME_NVIDIA = 1,     ///< libcuda.so.1 and NCCL, or an error.
  SPARK_COMM_RUNTIME_HOST = 2        ///< The bundled CPU runtime.
};

/// How loud a message is.
typedef int32_t spark_comm_severity;

enum {
  SPARK_COMM_SEVERITY_INFO = 0,     ///< What was chosen and why.
  SPARK_COMM_SEVERITY_WARNING = 1,  ///< Works, but not as well or not as asked.
  SPARK_COMM_SEVERITY_ERROR = 2     ///< Something failed where no call could report it.
};

/// Takes a message of one line. Called from any thread, one call at a time; must not call back into
/// the library, nor leave by an exception or longjmp.
typedef void (*spark_comm_sink)(void* data, spark_comm_severity severity, const char* text);

typedef struct spark_comm_runtime_options {
  size_t struct_size;
  const char* nccl_library;  ///< Path; null: SPARK_COMM_NCCL_LIBRARY, else "libnccl.so.2".
  const char* host_library;  ///< Path; null: SPARK_COMM_HOST_LIBRARY, else beside this library.
  spark_comm_sink sink;      ///< Null: warnings and errors go to stderr.
  void* sink_data;           ///< Handed to `sink`. Both have to stay valid until the process ends,
                             ///< because a native call that was left behind may still report.
} spark_comm_runtime_options;

/// What newer NCCL libraries bring.
typedef int32_t spark_comm_capability;

enum {
  SPARK_COMM_CAPABILITY_WINDOW = 0,      ///< Window registration, since 2.27.3.
  SPARK_COMM_CAPABILITY_ALL_TO_ALL = 1,  ///< A native all-to-all, since 2.28.3.
  SPARK_COMM_CAPABILITY_REVOKE = 2,      ///< ncclCommRevoke, since 2.28.7.
  SPARK_COMM_CAPABILITY_FP8 = 3          ///< fp8 data types, since 2.24.3.
};

/// Versions are as the vendor counts them: 22809 is NCCL 2.28.9, 13000 is CUDA 13.0. Texts live as
/// long as the runtime.
typedef struct spark_comm_runtime_info {
  size_t struct_size;  ///< In: sizeof the struct. The rest is filled in.
  spark_comm_runtime_kind kind;
  int32_t nccl_version;
  int32_t driver_version;
  int32_t device_count;
  const char* nccl_file;
  const char* nccl_build_id;  ///< "" when the file has none.
  const char* driver_file;
  const char* description;  ///< One line: which runtime, versions, files, and why it was chosen.
} spark_comm_runtime_info;

/// `options` may be null. Threads: a runtime may be used by any.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_runtime_load(spark_comm_runtime_kind kind,
                        const spark_comm_runtime_options* options,
                        spark_comm_runtime** loaded,
                        spark_comm_error** failure);

SPARK_COMM_C_CHECKED spark_comm_code spark_comm_runtime_describe(const spark_comm_runtime* loaded,
                                                                 spark_comm_runtime_info* info,
                                                                 spark_comm_error** failure);

/// 1 or 0; 0 for null and for numbers that are no capability.
SPARK_COMM_C_API int32_t spark_comm_runtime_supports(const spark_comm_runtime* loaded,
                                                     spark_comm_capability what);

/// Communicators and devices made from it keep what they need. The libraries stay loaded. Null is
/// fine.
SPARK_COMM_C_API void spark_comm_runtime_destroy(spark_comm_runtime* loaded);

#ifdef __cplusplus
}
#endif
