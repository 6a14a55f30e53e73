// SPDX-License-Identifier: AGPL-3.0-only
// What the fault script knows about the exported calls.
#include "fault_script.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace spark_comm::host {
namespace {

using namespace std::string_view_literals;

constexpr std::array gathered_calls{
    "ncclAllGather"sv,
    "ncclAllReduce"sv,
    "ncclAlltoAll"sv,
    "ncclBcast"sv,
    "ncclBroadcast"sv,
    "ncclCommFinalize"sv,
    "ncclCommInitRankConfig"sv,
    "ncclCommInitRankScalable"sv,
    "ncclCommRevoke"sv,
    "ncclCommShrink"sv,
    "ncclCommSplit"sv,
    "ncclCommWindowRegister"sv,
    "ncclGather"sv,
    "ncclRecv"sv,
    "ncclReduce"sv,
    "ncclReduceScatter"sv,
    "ncclScatter"sv,
    "ncclSend"sv,
};

constexpr std::array release_calls{
    "cuCtxPopCurrent_v2"sv,
    "cuCtxPushCurrent_v2"sv,
    "cuDevicePrimaryCtxRelease_v2"sv,
    "cuEventDestroy_v2"sv,
    "cuGraphDestroy"sv,
    "cuGraphExecDestroy"sv,
    "cuIpcCloseMemHandle"sv,
    "cuMemFreeHost"sv,
    "cuMemFree_v2"sv,
    "cuModuleUnload"sv,
    "cuStreamDestroy_v2"sv,
    "ncclCommAbort"sv,
    "ncclCommDeregister"sv,
    "ncclCommWindowDeregister"sv,
    "ncclGroupEnd"sv,
    "ncclMemFree"sv,
    "ncclRedOpDestroy"sv,
};

constexpr std::array polling_calls{"cuEventQuery"sv, "cuStreamQuery"sv, "ncclCommGetAsyncError"sv};

constexpr std::array other_calls{
    "cuCtxEnablePeerAccess"sv,
    "cuCtxGetCurrent"sv,
    "cuCtxGetDevice"sv,
    "cuCtxSetCurrent"sv,
    "cuDeviceCanAccessPeer"sv,
    "cuDeviceGet"sv,
    "cuDeviceGetAttribute"sv,
    "cuDeviceGetCount"sv,
    "cuDeviceGetName"sv,
    "cuDeviceGetPCIBusId"sv,
    "cuDeviceGetUuid_v2"sv,
    "cuDevicePrimaryCtxRetain"sv,
    "cuDeviceTotalMem_v2"sv,
    "cuDriverGetVersion"sv,
    "cuEventCreate"sv,
    "cuEventElapsedTime"sv,
    "cuEventRecord"sv,
    "cuEventSynchronize"sv,
    "cuGraphInstantiateWithFlags"sv,
    "cuGraphLaunch"sv,
    "cuInit"sv,
    "cuIpcGetMemHandle"sv,
    "cuIpcOpenMemHandle_v2"sv,
    "cuLaunchHostFunc"sv,
    "cuLaunchKernel"sv,
    "cuMemAlloc_v2"sv,
    "cuMemGetAddressRange_v2"sv,
    "cuMemGetInfo_v2"sv,
    "cuMemHostAlloc"sv,
    "cuMemHostGetDevicePointer_v2"sv,
    "cuMemcpyAsync"sv,
    "cuMemsetD32Async"sv,
    "cuMemsetD8Async"sv,
    "cuModuleGetFunction"sv,
    "cuModuleLoadData"sv,
    "cuPointerGetAttribute"sv,
    "cuStreamBeginCapture_v2"sv,
    "cuStreamCreate"sv,
    "cuStreamEndCapture"sv,
    "cuStreamGetCtx"sv,
    "cuStreamGetId"sv,
    "cuStreamIsCapturing"sv,
    "cuStreamSynchronize"sv,
    "cuStreamWaitEvent"sv,
    "cuStreamWriteValue32_v2"sv,
    "cuThreadExchangeStreamCaptureMode"sv,
    "ncclCommCount"sv,
    "ncclCommCuDevice"sv,
    "ncclCommDestroy"sv,
    "ncclCommInitAll"sv,
    "ncclCommInitRank"sv,
    "ncclCommRegister"sv,
    "ncclCommUserRank"sv,
    "ncclGetUniqueId"sv,
    "ncclGetVersion"sv,
    "ncclGroupSimulateEnd"sv,
    "ncclGroupStart"sv,
    "ncclMemAlloc"sv,
    "ncclRedOpCreatePreMulSum"sv,
};

}  // namespace

const std::vector<std::string_view>& fault_calls() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> calls;
    calls.insert(calls.end(), gathered_calls.begin(), gathered_calls.end());
    calls.insert(calls.end(), release_calls.begin(), release_calls.end());
    calls.insert(calls.end(), polling_calls.begin(), polling_calls.end());
    calls.insert(calls.end(), other_calls.begin(), other_calls.end());
    return calls;
  }();
  return all;
}

bool matches(std::string_view pattern, std::string_view call) noexcept {
  if (!pattern.ends_with('*')) {
    return pattern == call;
  }
  pattern.remove_suffix(1);
  return call.starts_with(pattern) && std::ranges::find(polling_calls, call) == polling_calls.end();
}

bool is_gathered(std::string_view call) noexcept {
  return std::ranges::find(gathered_calls, call) != gathered_calls.end();
}

bool is_release(std::string_view call) noexcept {
  return std::ranges::find(release_calls, call) != release_calls.end();
}

}  // namespace spark_comm::host
