// SPDX-License-Identifier: AGPL-3.0-only
// The driver calls that the host runtime exports, with the vendor's names and argument lists.
#pragma once

#include "driver_abi.hpp"

#include <spark_comm/core/export.hpp>

#include <cstddef>
#include <cstdint>

namespace spark_comm::host {

extern "C" {

SPARK_COMM_API driver::result cuInit(unsigned int flags);
SPARK_COMM_API driver::result cuDriverGetVersion(int* version);
SPARK_COMM_API driver::result cuGetErrorName(driver::result code, const char** name);
SPARK_COMM_API driver::result cuGetErrorString(driver::result code, const char** text);
SPARK_COMM_API driver::result cuDeviceGetCount(int* count);
SPARK_COMM_API driver::result cuDeviceGet(driver::device* device, int ordinal);
SPARK_COMM_API driver::result cuDeviceGetName(char* name, int length, driver::device device);
SPARK_COMM_API driver::result cuDeviceGetUuid_v2(driver::uuid* id, driver::device device);
SPARK_COMM_API driver::result cuDeviceTotalMem_v2(std::size_t* bytes, driver::device device);
SPARK_COMM_API driver::result cuDeviceGetAttribute(int* value,
                                                   int attribute,
                                                   driver::device device);
SPARK_COMM_API driver::result cuDeviceGetPCIBusId(char* text, int length, driver::device device);
SPARK_COMM_API driver::result cuDeviceCanAccessPeer(int* can,
                                                    driver::device device,
                                                    driver::device peer);
SPARK_COMM_API driver::result cuDevicePrimaryCtxRetain(driver::context* context,
                                                       driver::device device);
SPARK_COMM_API driver::result cuDevicePrimaryCtxRelease_v2(driver::device device);
SPARK_COMM_API driver::result cuCtxGetCurrent(driver::context* context);
SPARK_COMM_API driver::result cuCtxSetCurrent(driver::context context);
SPARK_COMM_API driver::result cuCtxPushCurrent_v2(driver::context context);
SPARK_COMM_API driver::result cuCtxPopCurrent_v2(driver::context* context);
SPARK_COMM_API driver::result cuCtxGetDevice(driver::device* device);
SPARK_COMM_API driver::result cuCtxEnablePeerAccess(driver::context peer, unsigned int flags);
SPARK_COMM_API driver::result cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes);
SPARK_COMM_API driver::result cuMemAlloc_v2(driver::device_ptr* address, std::size_t bytes);
SPARK_COMM_API driver::result cuMemFree_v2(driver::device_ptr address);
SPARK_COMM_API driver::result cuMemHostAlloc(void** address, std::size_t bytes, unsigned int flags);
SPARK_COMM_API driver::result cuMemFreeHost(void* address);
SPARK_COMM_API driver::result cuMemHostGetDevicePointer_v2(driver::device_ptr* device,
                                                           void* host,
                                                           unsigned int flags);
SPARK_COMM_API driver::result cuMemGetAddressRange_v2(driver::device_ptr* base,
                                                      std::size_t* bytes,
                                                      driver::device_ptr address);
SPARK_COMM_API driver::result cuPointerGetAttribute(void* value,
                                                    int attribute,
                                                    driver::device_ptr address);
SPARK_COMM_API driver::result cuMemcpyAsync(driver::device_ptr to,
                                            driver::device_ptr from,
                                            std::size_t bytes,
                                            driver::stream stream);
SPARK_COMM_API driver::result cuMemsetD8Async(driver::device_ptr to,
                                              unsigned char value,
                                              std::size_t count,
                                              driver::stream stream);
SPARK_COMM_API driver::result cuMemsetD32Async(driver::device_ptr to,
                                               unsigned int value,
                                               std::size_t count,
                                               driver::stream stream);
SPARK_COMM_API driver::result cuIpcGetMemHandle(driver::ipc_mem_handle* handle,
                                                driver::device_ptr address);
SPARK_COMM_API driver::result cuIpcOpenMemHandle_v2(driver::device_ptr* address,
                                                    driver::ipc_mem_handle handle,
                                                    unsigned int flags);
SPARK_COMM_API driver::result cuIpcCloseMemHandle(driver::device_ptr address);
SPARK_COMM_API driver::result cuStreamCreate(driver::stream* stream, unsigned int flags);
SPARK_COMM_API driver::result cuStreamDestroy_v2(driver::stream stream);
SPARK_COMM_API driver::result cuStreamSynchronize(driver::stream stream);
SPARK_COMM_API driver::result cuStreamQuery(driver::stream stream);
SPARK_COMM_API driver::result cuStreamWaitEvent(driver::stream stream,
                                                driver::event event,
                                                unsigned int flags);
SPARK_COMM_API driver::result cuStreamGetCtx(driver::stream stream, driver::context* context);
SPARK_COMM_API driver::result cuStreamGetId(driver::stream stream, unsigned long long* id);
SPARK_COMM_API driver::result cuStreamIsCapturing(driver::stream stream,
                                                  driver::capture_status* status);
SPARK_COMM_API driver::result cuStreamBeginCapture_v2(driver::stream stream,
                                                      driver::capture_mode mode);
SPARK_COMM_API driver::result cuStreamEndCapture(driver::stream stream, driver::graph* graph);
SPARK_COMM_API driver::result cuThreadExchangeStreamCaptureMode(driver::capture_mode* mode);
SPARK_COMM_API driver::result cuStreamWriteValue32_v2(driver::stream stream,
                                                      driver::device_ptr address,
                                                      std::uint32_t value,
                                                      unsigned int flags);
SPARK_COMM_API driver::result cuLaunchHostFunc(driver::stream stream,
                                               driver::host_function function,
                                               void* user_data);
SPARK_COMM_API driver::result cuEventCreate(driver::event* event, unsigned int flags);
SPARK_COMM_API driver::result cuEventDestroy_v2(driver::event event);
SPARK_COMM_API driver::result cuEventRecord(driver::event event, driver::stream stream);
SPARK_COMM_API driver::result cuEventQuery(driver::event event);
SPARK_COMM_API driver::result cuEventSynchronize(driver::event event);
SPARK_COMM_API driver::result cuEventElapsedTime(float* milliseconds,
                                                 driver::event start,
                                                 driver::event end);
SPARK_COMM_API driver::result cuGraphInstantiateWithFlags(driver::graph_exec* exec,
                                                          driver::graph graph,
                                                          unsigned long long flags);
SPARK_COMM_API driver::result cuGraphLaunch(driver::graph_exec exec, driver::stream stream);
SPARK_COMM_API driver::result cuGraphExecDestroy(driver::graph_exec exec);
SPARK_COMM_API driver::result cuGraphDestroy(driver::graph graph);
SPARK_COMM_API driver::result cuModuleLoadData(driver::module* module, const void* image);
SPARK_COMM_API driver::result cuModuleUnload(driver::module module);
SPARK_COMM_API driver::result cuModuleGetFunction(driver::function* function,
                                                  driver::module module,
                                                  const char* name);
SPARK_COMM_API driver::result cuLaunchKernel(driver::function function,
                                             unsigned int grid_x,
                                             unsigned int grid_y,
                                             unsigned int grid_z,
                                             unsigned int block_x,
                                             unsigned int block_y,
                                             unsigned int block_z,
                                             unsigned int shared_bytes,
                                             driver::stream stream,
                                             void** arguments,
                                             void** extra);

/// Test hook: how many objects of a kind are alive. Kinds: 0 streams, 1 events, 2 graphs, 3
/// executable graphs, 4 modules, 5 device allocations, 6 pinned allocations, 7 imported memory, 8
/// retained contexts. -1 for any other number.
SPARK_COMM_API int spark_comm_host_live_handles(int kind);

/// Test hook: replaces the fault script, with all counters at zero; null or empty for none. Not
/// while another call runs. 0, or 1 when the script is wrong, which is said on stderr.
SPARK_COMM_API int spark_comm_host_set_faults(const char* text);

/// Test hook: how often a rule of the script has been applied.
SPARK_COMM_API int spark_comm_host_faults_applied();

}  // extern "C"

}  // namespace spark_comm::host
