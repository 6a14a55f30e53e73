// SPDX-License-Identifier: AGPL-3.0-only
// Which way operations go.
#include <spark_comm/c/detail/boundary.hpp>
#include <spark_comm/c/detail/handles.hpp>
#include <spark_comm/c/paths.h>
#include <spark_comm/c/types.h>
#include <spark_comm/core/data_type.hpp>
#include <spark_comm/core/reduce_op.hpp>
#include <spark_comm/paths/path_of.hpp>
#include <spark_comm/paths/path_table.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstdint>

namespace {

using spark_comm::operation_kind;
using spark_comm::path_kind;

static_assert(SPARK_COMM_OPERATION_ALL_REDUCE == static_cast<int>(operation_kind::all_reduce));
static_assert(SPARK_COMM_OPERATION_REDUCE == static_cast<int>(operation_kind::reduce));
static_assert(SPARK_COMM_OPERATION_BROADCAST == static_cast<int>(operation_kind::broadcast));
static_assert(SPARK_COMM_OPERATION_ALL_GATHER == static_cast<int>(operation_kind::all_gather));
static_assert(SPARK_COMM_OPERATION_REDUCE_SCATTER ==
              static_cast<int>(operation_kind::reduce_scatter));
static_assert(SPARK_COMM_OPERATION_SEND == static_cast<int>(operation_kind::send));
static_assert(SPARK_COMM_OPERATION_RECV == static_cast<int>(operation_kind::recv));
static_assert(SPARK_COMM_OPERATION_ALL_TO_ALL == static_cast<int>(operation_kind::all_to_all));
static_assert(SPARK_COMM_OPERATION_BARRIER == static_cast<int>(operation_kind::barrier));
static_assert(SPARK_COMM_OPERATION_GROUP == static_cast<int>(operation_kind::group));
static_assert(SPARK_COMM_OPERATION_ALL_REDUCE_RMS_NORM ==
              static_cast<int>(operation_kind::all_reduce_rms_norm));
static_assert(SPARK_COMM_PATH_NCCL == static_cast<int>(path_kind::nccl));
static_assert(SPARK_COMM_PATH_EXCHANGE == static_cast<int>(path_kind::exchange));
static_assert(SPARK_COMM_PATH_EXCHANGE_FUSED == static_cast<int>(path_kind::exchange_fused));
static_assert(SPARK_COMM_PATH_ONE_SHOT == static_cast<int>(path_kind::one_shot));
static_assert(SPARK_COMM_PATH_TWO_SHOT == static_cast<int>(path_kind::two_shot));
static_assert(SPARK_COMM_PATH_ONE_SHOT_FUSED == static_cast<int>(path_kind::one_shot_fused));
static_assert(SPARK_COMM_PATH_LOCAL == static_cast<int>(path_kind::local));
static_assert(SPARK_COMM_PATH_LOW_LATENCY == static_cast<int>(path_kind::low_latency));

}  // namespace

spark_comm_code spark_comm_communicator_paths(const spark_comm_communicator* communicator,
                                              spark_comm_path_capabilities* capabilities,
                                              spark_comm_error** failure) {
  return spark_comm::c::guarded(__func__, failure, [&](const auto& check) {
    const spark_comm::path_capabilities& agreed =
        capabilities_of(check.deref(communicator, "the communicator").value);
    check.write(capabilities,
                {.struct_size = 0,
                 .world_size = agreed.world_size,
                 .is_one_host = agreed.reach == spark_comm::world_reach::near ? 1 : 0,
                 .exchange_bytes = agreed.exchange_bytes,
                 .staging_bytes = agreed.staging_bytes,
                 .low_latency_bytes = agreed.low_latency_bytes},
                "capabilities");
  });
}

spark_comm_code spark_comm_communicator_path_of(const spark_comm_communicator* communicator,
                                                spark_comm_operation_kind operation,
                                                spark_comm_data_type dtype,
                                                spark_comm_reduce_op op,
                                                std::uint64_t bytes,
                                                spark_comm_path* path,
                                                spark_comm_error** failure) {
  return spark_comm::c::guarded(__func__, failure, [&](const auto& check) {
    const auto& comm = check.deref(communicator, "the communicator").value;
    const spark_comm::path_query asked{
        .operation = check.member_of(spark_comm::all_operation_kinds, operation, "operation"),
        .dtype = check.member_of(spark_comm::all_data_types, dtype, "data type"),
        .op = check.member_of(spark_comm::all_reduce_ops, op, "reduce operation"),
        .bytes = bytes,
        .staging_bytes = bytes};
    check.deref(path, "path") = static_cast<spark_comm_path>(path_of(comm, asked));
  });
}

const char* spark_comm_path_name(spark_comm_path path) {
  return name_of(spark_comm::c::any_of<path_kind>(path)).data();
}

const char* spark_comm_operation_name(spark_comm_operation_kind operation) {
  return name_of(spark_comm::c::any_of<operation_kind>(operation)).data();
}
