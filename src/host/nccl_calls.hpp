// SPDX-License-Identifier: AGPL-3.0-only
// The NCCL calls that the host runtime exports, with the vendor's names and argument lists.
// Enumerations travel as the integers that they are.
#pragma once

#include "nccl_abi.hpp"

#include <spark_comm/core/export.hpp>

#include <cstddef>

namespace spark_comm::host::nccl {

// NOLINTBEGIN(readability-function-size): the argument lists are NCCL's
extern "C" {

SPARK_COMM_API int ncclGetVersion(int* version);
SPARK_COMM_API const char* ncclGetErrorString(int code);
SPARK_COMM_API const char* ncclGetLastError(ncclComm* comm);

SPARK_COMM_API int ncclGetUniqueId(unique_id* id);
SPARK_COMM_API int ncclCommInitRank(ncclComm** comm, int ranks, unique_id id, int rank);
SPARK_COMM_API int ncclCommInitRankConfig(
    ncclComm** comm, int ranks, unique_id id, int rank, config* options);
SPARK_COMM_API int ncclCommInitRankScalable(
    ncclComm** comm, int ranks, int rank, int id_count, unique_id* ids, config* options);
SPARK_COMM_API int ncclCommInitAll(ncclComm** comms, int count, const int* devices);
SPARK_COMM_API int ncclCommSplit(
    ncclComm* comm, int color, int key, ncclComm** child, config* options);
SPARK_COMM_API int ncclCommShrink(ncclComm* comm,
                                  int* excluded,
                                  int excluded_count,
                                  ncclComm** child,
                                  config* options,
                                  int flags);

SPARK_COMM_API int ncclCommFinalize(ncclComm* comm);
SPARK_COMM_API int ncclCommDestroy(ncclComm* comm);
SPARK_COMM_API int ncclCommAbort(ncclComm* comm);
SPARK_COMM_API int ncclCommRevoke(ncclComm* comm, int flags);
SPARK_COMM_API int ncclCommGetAsyncError(ncclComm* comm, int* state);
SPARK_COMM_API int ncclCommCount(const ncclComm* comm, int* count);
SPARK_COMM_API int ncclCommCuDevice(const ncclComm* comm, int* device);
SPARK_COMM_API int ncclCommUserRank(const ncclComm* comm, int* rank);

SPARK_COMM_API int ncclMemAlloc(void** address, std::size_t bytes);
SPARK_COMM_API int ncclMemFree(void* address);
SPARK_COMM_API int ncclCommRegister(const ncclComm* comm,
                                    void* base,
                                    std::size_t bytes,
                                    void** handle);
SPARK_COMM_API int ncclCommDeregister(const ncclComm* comm, void* handle);
SPARK_COMM_API int ncclCommWindowRegister(
    ncclComm* comm, void* base, std::size_t bytes, ncclWindow_vidmem** window, int flags);
SPARK_COMM_API int ncclCommWindowDeregister(ncclComm* comm, ncclWindow_vidmem* window);

SPARK_COMM_API int ncclRedOpCreatePreMulSum(
    int* op, void* scalar, int dtype, int residence, ncclComm* comm);
SPARK_COMM_API int ncclRedOpDestroy(int op, ncclComm* comm);

SPARK_COMM_API int ncclAllReduce(const void* in,
                                 void* out,
                                 std::size_t count,
                                 int dtype,
                                 int op,
                                 ncclComm* comm,
                                 CUstream_st* stream);
SPARK_COMM_API int ncclReduce(const void* in,
                              void* out,
                              std::size_t count,
                              int dtype,
                              int op,
                              int root,
                              ncclComm* comm,
                              CUstream_st* stream);
SPARK_COMM_API int ncclBroadcast(const void* in,
                                 void* out,
                                 std::size_t count,
                                 int dtype,
                                 int root,
                                 ncclComm* comm,
                                 CUstream_st* stream);
SPARK_COMM_API int ncclBcast(
    void* buffer, std::size_t count, int dtype, int root, ncclComm* comm, CUstream_st* stream);
SPARK_COMM_API int ncclAllGather(
    const void* in, void* out, std::size_t count, int dtype, ncclComm* comm, CUstream_st* stream);
SPARK_COMM_API int ncclReduceScatter(const void* in,
                                     void* out,
                                     std::size_t count,
                                     int dtype,
                                     int op,
                                     ncclComm* comm,
                                     CUstream_st* stream);
SPARK_COMM_API int ncclAlltoAll(
    const void* in, void* out, std::size_t count, int dtype, ncclComm* comm, CUstream_st* stream);
SPARK_COMM_API int ncclGather(const void* in,
                              void* out,
                              std::size_t count,
                              int dtype,
                              int root,
                              ncclComm* comm,
                              CUstream_st* stream);
SPARK_COMM_API int ncclScatter(const void* in,
                               void* out,
                               std::size_t count,
                               int dtype,
                               int root,
                               ncclComm* comm,
                               CUstream_st* stream);
SPARK_COMM_API int ncclSend(
    const void* in, std::size_t count, int dtype, int peer, ncclComm* comm, CUstream_st* stream);
SPARK_COMM_API int ncclRecv(
    void* out, std::size_t count, int dtype, int peer, ncclComm* comm, CUstream_st* stream);

SPARK_COMM_API int ncclGroupStart();
SPARK_COMM_API int ncclGroupEnd();
SPARK_COMM_API int ncclGroupSimulateEnd(simulation_info* info);

/// Test hook: how many calls were made with a communicator that is gone.
SPARK_COMM_API int spark_comm_host_stale_calls();

}  // extern "C"
// NOLINTEND(readability-function-size)

}  // namespace spark_comm::host::nccl
