// SPDX-License-Identifier: AGPL-3.0-only
// The table of NCCL calls: the seam under which NVIDIA's library and the host runtime are the same
// thing. A plain struct of pointers, so that a test can replace a single call.
#pragma once

#include <spark_comm/nccl/abi.hpp>

// One line a call: result type, exported symbol = member name, arguments as in nccl.h.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): table, loader and ABI test are made from one list
#define SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(X)                                                      \
  X(abi::result, ncclGetVersion, (int* version))                                                   \
  X(const char*, ncclGetErrorString, (abi::result code))                                           \
  X(const char*, ncclGetLastError, (abi::comm comm))                                               \
  X(abi::result, ncclGetUniqueId, (abi::unique_id * id))                                           \
  X(abi::result, ncclCommInitRank, (abi::comm * comm, int ranks, abi::unique_id id, int rank))     \
  X(abi::result,                                                                                   \
    ncclCommInitRankConfig,                                                                        \
    (abi::comm * comm, int ranks, abi::unique_id id, int rank, abi::config* config))               \
  X(abi::result,                                                                                   \
    ncclCommSplit,                                                                                 \
    (abi::comm comm, int color, int key, abi::comm* child, abi::config* config))                   \
  X(abi::result, ncclCommFinalize, (abi::comm comm))                                               \
  X(abi::result, ncclCommDestroy, (abi::comm comm))                                                \
  X(abi::result, ncclCommAbort, (abi::comm comm))                                                  \
  X(abi::result, ncclCommGetAsyncError, (abi::comm comm, abi::result * state))                     \
  X(abi::result, ncclCommCount, (abi::comm comm, int* count))                                      \
  X(abi::result, ncclCommCuDevice, (abi::comm comm, int* device))                                  \
  X(abi::result, ncclCommUserRank, (abi::comm comm, int* rank))                                    \
  X(abi::result, ncclCommRegister, (abi::comm comm, void* base, std::size_t bytes, void** handle)) \
  X(abi::result, ncclCommDeregister, (abi::comm comm, void* handle))                               \
  X(abi::result, ncclMemAlloc, (void** address, std::size_t bytes))                                \
  X(abi::result, ncclMemFree, (void* address))                                                     \
  X(abi::result,                                                                                   \
    ncclAllReduce,                                                                                 \
    (const void* in,                                                                               \
     void* out,                                                                                    \
     std::size_t count,                                                                            \
     abi::data_type dtype,                                                                         \
     abi::reduce_op op,                                                                            \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclReduce,                                                                                    \
    (const void* in,                                                                               \
     void* out,                                                                                    \
     std::size_t count,                                                                            \
     abi::data_type dtype,                                                                         \
     abi::reduce_op op,                                                                            \
     int root,                                                                                     \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclBroadcast,                                                                                 \
    (const void* in,                                                                               \
     void* out,                                                                                    \
     std::size_t count,                                                                            \
     abi::data_type dtype,                                                                         \
     int root,                                                                                     \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclAllGather,                                                                                 \
    (const void* in,                                                                               \
     void* out,                                                                                    \
     std::size_t send_count,                                                                       \
     abi::data_type dtype,                                                                         \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclReduceScatter,                                                                             \
    (const void* in,                                                                               \
     void* out,                                                                                    \
     std::size_t recv_count,                                                                       \
     abi::data_type dtype,                                                                         \
     abi::reduce_op op,                                                                            \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclSend,                                                                                      \
    (const void* in,                                                                               \
     std::size_t count,                                                                            \
     abi::data_type dtype,                                                                         \
     int peer,                                                                                     \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result,                                                                                   \
    ncclRecv,                                                                                      \
    (void* out,                                                                                    \
     std::size_t count,                                                                            \
     abi::data_type dtype,                                                                         \
     int peer,                                                                                     \
     abi::comm comm,                                                                               \
     abi::stream stream))                                                                          \
  X(abi::result, ncclGroupStart, ())                                                               \
  X(abi::result, ncclGroupEnd, ())

// Newer than the floor (2.19): null in the table when the library lacks them.
// Arguments: result type, symbol, arguments, version code that brought it.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(X)                                           \
  X(abi::result,                                                                        \
    ncclCommWindowRegister,                                                             \
    (abi::comm comm, void* base, std::size_t bytes, abi::window* window, int flags),    \
    22703)                                                                              \
  X(abi::result, ncclCommWindowDeregister, (abi::comm comm, abi::window window), 22703) \
  X(abi::result,                                                                        \
    ncclAlltoAll,                                                                       \
    (const void* in,                                                                    \
     void* out,                                                                         \
     std::size_t count,                                                                 \
     abi::data_type dtype,                                                              \
     abi::comm comm,                                                                    \
     abi::stream stream),                                                               \
    22803)                                                                              \
  X(abi::result, ncclCommRevoke, (abi::comm comm, int flags), 22807)

namespace spark_comm::nccl {

/// Every NCCL call that the library makes.
struct api {
// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define SPARK_COMM_DECLARE(type, name, arguments) type(*name) arguments = nullptr;
#define SPARK_COMM_DECLARE_OPTIONAL(type, name, arguments, since) type(*name) arguments = nullptr;
  // NOLINTEND(cppcoreguidelines-macro-usage)
  SPARK_COMM_NCCL_REQUIRED_FUNCTIONS(SPARK_COMM_DECLARE)
  SPARK_COMM_NCCL_OPTIONAL_FUNCTIONS(SPARK_COMM_DECLARE_OPTIONAL)
#undef SPARK_COMM_DECLARE
#undef SPARK_COMM_DECLARE_OPTIONAL
};

}  // namespace spark_comm::nccl
