// SPDX-License-Identifier: AGPL-3.0-only
// The table of CUDA driver calls: the seam under which the NVIDIA driver and the host runtime are
// the same thing. A plain struct of pointers, so that a test can replace a single call.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/cuda/abi.hpp>

// One line a call: result and arguments as in cuda.h, member name = exported symbol. The versioned
// symbols are the ones that cuda.h's plain names stand for.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): table, loader and ABI test are made from one list
#define SPARK_COMM_CUDA_FUNCTIONS(X)                                                          \
  X(cuInit, (unsigned int flags))                                                             \
  X(cuDriverGetVersion, (int* version))                                                       \
  X(cuGetErrorName, (abi::result code, const char** name))                                    \
  X(cuGetErrorString, (abi::result code, const char** text))                                  \
  X(cuDeviceGetCount, (int* count))                                                           \
  X(cuDeviceGet, (abi::device * device, int ordinal))                                         \
  X(cuDeviceGetName, (char* name, int length, abi::device device))                            \
  X(cuDeviceGetUuid_v2, (abi::uuid * id, abi::device device))                                 \
  X(cuDeviceTotalMem_v2, (std::size_t* bytes, abi::device device))                            \
  X(cuDeviceGetAttribute, (int* value, int attribute, abi::device device))                    \
  X(cuDeviceGetPCIBusId, (char* text, int length, abi::device device))                        \
  X(cuDeviceCanAccessPeer, (int* can, abi::device device, abi::device peer))                  \
  X(cuDevicePrimaryCtxRetain, (abi::context * context, abi::device device))                   \
  X(cuDevicePrimaryCtxRelease_v2, (abi::device device))                                       \
  X(cuCtxGetCurrent, (abi::context * context))                                                \
  X(cuCtxSetCurrent, (abi::context context))                                                  \
  X(cuCtxGetDevice, (abi::device * device))                                                   \
  X(cuCtxEnablePeerAccess, (abi::context peer, unsigned int flags))                           \
  X(cuMemGetInfo_v2, (std::size_t* free_bytes, std::size_t* total_bytes))                     \
  X(cuMemAlloc_v2, (abi::device_ptr * address, std::size_t bytes))                            \
  X(cuMemFree_v2, (abi::device_ptr address))                                                  \
  X(cuMemHostAlloc, (void** address, std::size_t bytes, unsigned int flags))                  \
  X(cuMemFreeHost, (void* address))                                                           \
  X(cuMemHostGetDevicePointer_v2, (abi::device_ptr * device, void* host, unsigned int flags)) \
  X(cuMemGetAddressRange_v2,                                                                  \
    (abi::device_ptr * base, std::size_t* bytes, abi::device_ptr address))                    \
  X(cuPointerGetAttribute, (void* value, int attribute, abi::device_ptr address))             \
  X(cuMemcpyAsync,                                                                            \
    (abi::device_ptr to, abi::device_ptr from, std::size_t bytes, abi::stream stream))        \
  X(cuMemsetD8Async,                                                                          \
    (abi::device_ptr to, unsigned char value, std::size_t count, abi::stream stream))         \
  X(cuMemsetD32Async,                                                                         \
    (abi::device_ptr to, unsigned int value, std::size_t count, abi::stream stream))          \
  X(cuIpcGetMemHandle, (abi::ipc_mem_handle * handle, abi::device_ptr address))               \
  X(cuIpcOpenMemHandle_v2,                                                                    \
    (abi::device_ptr * address, abi::ipc_mem_handle handle, unsigned int flags))              \
  X(cuIpcCloseMemHandle, (abi::device_ptr address))                                           \
  X(cuStreamCreate, (abi::stream * stream, unsigned int flags))                               \
  X(cuStreamDestroy_v2, (abi::stream stream))                                                 \
  X(cuStreamSynchronize, (abi::stream stream))                                                \
  X(cuStreamQuery, (abi::stream stream))                                                      \
  X(cuStreamWaitEvent, (abi::stream stream, abi::event event, unsigned int flags))            \
  X(cuStreamGetCtx, (abi::stream stream, abi::context * context))                             \
  X(cuStreamIsCapturing, (abi::stream stream, abi::capture_status * status))                  \
  X(cuStreamBeginCapture_v2, (abi::stream stream, abi::capture_mode mode))                    \
  X(cuStreamEndCapture, (abi::stream stream, abi::graph * graph))                             \
  X(cuThreadExchangeStreamCaptureMode, (abi::capture_mode * mode))                            \
  X(cuStreamWriteValue32_v2,                                                                  \
    (abi::stream stream, abi::device_ptr address, std::uint32_t value, unsigned int flags))   \
  X(cuLaunchHostFunc, (abi::stream stream, abi::host_function function, void* user_data))     \
  X(cuEventCreate, (abi::event * event, unsigned int flags))                                  \
  X(cuEventDestroy_v2, (abi::event event))                                                    \
  X(cuEventRecord, (abi::event event, abi::stream stream))                                    \
  X(cuEventQuery, (abi::event event))                                                         \
  X(cuEventSynchronize, (abi::event event))                                                   \
  X(cuEventElapsedTime, (float* milliseconds, abi::event start, abi::event end))              \
  X(cuGraphInstantiateWithFlags,                                                              \
    (abi::graph_exec * exec, abi::graph graph, unsigned long long flags))                     \
  X(cuGraphLaunch, (abi::graph_exec exec, abi::stream stream))                                \
  X(cuGraphExecDestroy, (abi::graph_exec exec))                                               \
  X(cuGraphDestroy, (abi::graph graph))                                                       \
  X(cuModuleLoadData, (abi::module * module, const void* image))                              \
  X(cuModuleUnload, (abi::module module))                                                     \
  X(cuModuleGetFunction, (abi::function * function, abi::module module, const char* name))    \
  X(cuLaunchKernel,                                                                           \
    (abi::function function,                                                                  \
     unsigned int grid_x,                                                                     \
     unsigned int grid_y,                                                                     \
     unsigned int grid_z,                                                                     \
     unsigned int block_x,                                                                    \
     unsigned int block_y,                                                                    \
     unsigned int block_z,                                                                    \
     unsigned int shared_bytes,                                                               \
     abi::stream stream,                                                                      \
     void** arguments,                                                                        \
     void** extra))

namespace spark_comm::cuda {

/// Every driver call that the library makes. All are present: the floor is CUDA 12.0's driver.
struct api {
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define SPARK_COMM_DECLARE(name, arguments) abi::result(*name) arguments = nullptr;
  SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_DECLARE)
#undef SPARK_COMM_DECLARE
};

}  // namespace spark_comm::cuda
