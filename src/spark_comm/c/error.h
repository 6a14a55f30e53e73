// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: errors as objects. Every call that can fail takes `spark_comm_error** failure`
// as its last argument. It may be null; otherwise it is set to null on success and to an error on
// failure, which the caller destroys.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Whose number `native_number` is.
typedef int32_t spark_comm_native_domain;

enum {
  SPARK_COMM_NATIVE_NONE = 0,   ///< No native call was involved.
  SPARK_COMM_NATIVE_NCCL = 1,   ///< An ncclResult_t.
  SPARK_COMM_NATIVE_CUDA = 2,   ///< A CUresult.
  SPARK_COMM_NATIVE_SYSTEM = 3  ///< An errno value.
};

/// Everything that is known about an error. Texts and lists live as long as the error; a text that
/// is not known is "", never null.
typedef struct spark_comm_error_details {
  size_t struct_size;  ///< In: sizeof the struct. The rest is filled in.
  spark_comm_code code;
  spark_comm_recovery recovery;
  const char* message;       ///< What happened, without the rest of the line.
  const char* communicator;  ///< Its name.
  const char* operation;
  int32_t rank;        ///< -1: not known.
  int32_t world_size;  ///< 0: not known.
  int32_t device;      ///< -1: not known.
  spark_comm_native_domain native_domain;
  int64_t native_number;
  const char* native_function;
  const char* native_text;
  spark_comm_optional sequence;  ///< Of the operation.
  spark_comm_optional count_elements;
  spark_comm_optional dtype;
  spark_comm_optional deadline_ns;
  const int32_t* peers;  ///< Ranks that are missing, lost, behind or in disagreement.
  size_t peer_count;
  const char* source_file;
  uint32_t source_line;
  uint32_t reserved;  ///< 0.
} spark_comm_error_details;

/// One line: operation, communicator, rank, message, peers, native call, code and what to do. Lives
/// as long as the error. For null, which is what is left when memory for an error ran out: a line
/// that says so.
SPARK_COMM_C_API const char* spark_comm_error_line(const spark_comm_error* error);

/// The code; SPARK_COMM_OUT_OF_MEMORY for null.
SPARK_COMM_C_API spark_comm_code spark_comm_error_code(const spark_comm_error* error);

/// What to do; SPARK_COMM_RETRY for null.
SPARK_COMM_C_API spark_comm_recovery spark_comm_error_recovery(const spark_comm_error* error);

/// Fails with SPARK_COMM_INVALID_ARGUMENT for null or a struct_size that cannot be.
SPARK_COMM_C_CHECKED spark_comm_code spark_comm_error_describe(const spark_comm_error* error,
                                                               spark_comm_error_details* details);

/// Short names: "timed_out", "reconnect"; "ok" for SPARK_COMM_OK, "unknown" for other numbers.
SPARK_COMM_C_API const char* spark_comm_code_name(spark_comm_code code);
SPARK_COMM_C_API const char* spark_comm_recovery_name(spark_comm_recovery recovery);

/// Null is fine.
SPARK_COMM_C_API void spark_comm_error_destroy(spark_comm_error* error);

#ifdef __cplusplus
}
#endif
