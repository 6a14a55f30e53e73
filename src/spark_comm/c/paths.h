// SPDX-License-Identifier: AGPL-3.0-only
// The C interface: which way a communicator's operations go, for those who want to know beforehand.
#pragma once

#include <spark_comm/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/// An operation, by the number that flight records have.
typedef int32_t spark_comm_operation_kind;

enum {
  SPARK_COMM_OPERATION_ALL_REDUCE = 1,
  SPARK_COMM_OPERATION_REDUCE = 2,
  SPARK_COMM_OPERATION_BROADCAST = 3,
  SPARK_COMM_OPERATION_ALL_GATHER = 4,
  SPARK_COMM_OPERATION_REDUCE_SCATTER = 5,
  SPARK_COMM_OPERATION_SEND = 6,
  SPARK_COMM_OPERATION_RECV = 7,
  SPARK_COMM_OPERATION_ALL_TO_ALL = 8,
  SPARK_COMM_OPERATION_BARRIER = 9,
  SPARK_COMM_OPERATION_GROUP = 10,
  SPARK_COMM_OPERATION_ALL_REDUCE_RMS_NORM = 11
};

/// A way, by the number that flight records have.
typedef int32_t spark_comm_path;

enum {
  SPARK_COMM_PATH_NCCL = 1,            ///< The library's own collective.
  SPARK_COMM_PATH_EXCHANGE = 2,        ///< Two ranks: send and receive, then a local add.
  SPARK_COMM_PATH_EXCHANGE_FUSED = 3,  ///< The same, with what follows in one kernel.
  SPARK_COMM_PATH_ONE_SHOT = 4,        ///< Every rank reads every other's mapped memory.
  SPARK_COMM_PATH_TWO_SHOT = 5,        ///< Reduce-scatter and all-gather through mapped memory.
  SPARK_COMM_PATH_ONE_SHOT_FUSED = 6,  ///< As one_shot, with what follows in the same kernel.
  SPARK_COMM_PATH_LOCAL = 7,           ///< Nothing leaves the rank.
  SPARK_COMM_PATH_LOW_LATENCY = 8      ///< As one_shot, pushed, with data and flag in one word.
};

/// What was agreed at the join. A limit of 0: not there.
typedef struct spark_comm_path_capabilities {
  size_t struct_size;  ///< In: sizeof the struct. The rest is filled in.
  int32_t world_size;
  int32_t is_one_host;         ///< Not 0: all ranks are on one host.
  uint64_t exchange_bytes;     ///< Largest message of the exchange paths.
  uint64_t staging_bytes;      ///< Largest of one_shot and two_shot.
  uint64_t low_latency_bytes;  ///< Largest of low_latency.
} spark_comm_path_capabilities;

SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_paths(const spark_comm_communicator* communicator,
                              spark_comm_path_capabilities* capabilities,
                              spark_comm_error** failure);

/// The way of an operation of `bytes` outside a group, on a stream that has buffers.
SPARK_COMM_C_CHECKED spark_comm_code
spark_comm_communicator_path_of(const spark_comm_communicator* communicator,
                                spark_comm_operation_kind operation,
                                spark_comm_data_type dtype,
                                spark_comm_reduce_op op,
                                uint64_t bytes,
                                spark_comm_path* path,
                                spark_comm_error** failure);

SPARK_COMM_C_API const char* spark_comm_path_name(spark_comm_path path);
SPARK_COMM_C_API const char* spark_comm_operation_name(spark_comm_operation_kind operation);

#ifdef __cplusplus
}
#endif
