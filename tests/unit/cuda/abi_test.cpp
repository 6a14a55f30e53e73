// SPDX-License-Identifier: AGPL-3.0-only
// Compares our declarations of the CUDA driver's ABI with cuda.h, at compile time.
// Built only where cuda.h is found.
#define __CUDA_API_VERSION_INTERNAL  // NOLINT(bugprone-reserved-identifier): declares all versions
#include <spark_comm/cuda/abi.hpp>
#include <spark_comm/cuda/api.hpp>

#include <cuda.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace spark_comm::cuda {
namespace {

// The vendor's type as we spell it: enumerations and the flags made of them are integers, structs
// of the same layout are ours, everything else is the same type.
template <typename T>
struct ours {
  using type = T;
};

template <typename T>
  requires std::is_enum_v<T>
struct ours<T> {
  using type = int;
};

template <>
struct ours<CUstreamCaptureMode> {
  using type = abi::capture_mode;
};

template <>
struct ours<CUstreamCaptureStatus> {
  using type = abi::capture_status;
};

template <>
struct ours<CUuuid> {
  using type = abi::uuid;
};

template <>
struct ours<CUipcMemHandle> {
  using type = abi::ipc_mem_handle;
};

template <typename T>
struct ours<T*> {
  using type = typename ours<T>::type*;
};

template <typename T>
struct ours<const T> {
  using type = const typename ours<T>::type;
};

template <typename Result, typename... Arguments>
struct ours<Result(Arguments...)> {
  using type = typename ours<Result>::type(typename ours<Arguments>::type...);
};

template <typename T>
using ours_t = typename ours<T>::type;

// Every function of the list has the type that cuda.h gives to the symbol of that name.
#define SPARK_COMM_COMPARE(name, arguments) \
  static_assert(std::is_same_v<ours_t<decltype(::name)>*, decltype(api::name)>, #name);
SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_COMPARE)
#undef SPARK_COMM_COMPARE

// An enumeration is passed as an integer of this size.
static_assert(sizeof(CUresult) == sizeof(abi::result));
static_assert(sizeof(CUdevice_attribute) == sizeof(int));
static_assert(sizeof(CUpointer_attribute) == sizeof(int));
static_assert(sizeof(CUstreamCaptureMode) == sizeof(abi::capture_mode));
static_assert(sizeof(CUstreamCaptureStatus) == sizeof(abi::capture_status));

static_assert(std::is_same_v<CUdevice, abi::device>);
static_assert(std::is_same_v<CUdeviceptr, abi::device_ptr>);
static_assert(std::is_same_v<CUcontext, abi::context>);
static_assert(std::is_same_v<CUstream, abi::stream>);
static_assert(std::is_same_v<CUevent, abi::event>);
static_assert(std::is_same_v<CUgraph, abi::graph>);
static_assert(std::is_same_v<CUgraphExec, abi::graph_exec>);
static_assert(std::is_same_v<CUmodule, abi::module>);
static_assert(std::is_same_v<CUfunction, abi::function>);
static_assert(std::is_same_v<CUhostFn, abi::host_function>);

static_assert(sizeof(CUuuid) == sizeof(abi::uuid) && alignof(CUuuid) == alignof(abi::uuid));
static_assert(offsetof(CUuuid, bytes) == offsetof(abi::uuid, bytes));
static_assert(sizeof(CUipcMemHandle) == sizeof(abi::ipc_mem_handle));
static_assert(alignof(CUipcMemHandle) == alignof(abi::ipc_mem_handle));
static_assert(offsetof(CUipcMemHandle, reserved) == offsetof(abi::ipc_mem_handle, reserved));

static_assert(CUDA_SUCCESS == abi::results::success);
static_assert(CUDA_ERROR_INVALID_VALUE == abi::results::invalid_value);
static_assert(CUDA_ERROR_OUT_OF_MEMORY == abi::results::out_of_memory);
static_assert(CUDA_ERROR_NOT_INITIALIZED == abi::results::not_initialized);
static_assert(CUDA_ERROR_DEINITIALIZED == abi::results::deinitialized);
static_assert(CUDA_ERROR_STUB_LIBRARY == abi::results::stub_library);
static_assert(CUDA_ERROR_NO_DEVICE == abi::results::no_device);
static_assert(CUDA_ERROR_INVALID_DEVICE == abi::results::invalid_device);
static_assert(CUDA_ERROR_INVALID_CONTEXT == abi::results::invalid_context);
static_assert(CUDA_ERROR_NO_BINARY_FOR_GPU == abi::results::no_binary_for_gpu);
static_assert(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED == abi::results::peer_access_already_enabled);
static_assert(CUDA_ERROR_INVALID_HANDLE == abi::results::invalid_handle);
static_assert(CUDA_ERROR_NOT_FOUND == abi::results::not_found);
static_assert(CUDA_ERROR_NOT_READY == abi::results::not_ready);
static_assert(CUDA_ERROR_ILLEGAL_ADDRESS == abi::results::illegal_address);
static_assert(CUDA_ERROR_NOT_PERMITTED == abi::results::not_permitted);
static_assert(CUDA_ERROR_NOT_SUPPORTED == abi::results::not_supported);
static_assert(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED == abi::results::stream_capture_unsupported);
static_assert(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED == abi::results::stream_capture_invalidated);
static_assert(CUDA_ERROR_STREAM_CAPTURE_UNJOINED == abi::results::stream_capture_unjoined);
static_assert(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT == abi::results::stream_capture_implicit);
static_assert(CUDA_ERROR_CAPTURED_EVENT == abi::results::captured_event);
static_assert(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD == abi::results::stream_capture_wrong_thread);
static_assert(CUDA_ERROR_UNKNOWN == abi::results::unknown);

static_assert(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ==
              abi::device_attribute::multiprocessor_count);
static_assert(CU_DEVICE_ATTRIBUTE_INTEGRATED == abi::device_attribute::integrated);
static_assert(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID == abi::device_attribute::pci_bus_id);
static_assert(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID == abi::device_attribute::pci_device_id);
static_assert(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID == abi::device_attribute::pci_domain_id);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ==
              abi::device_attribute::compute_capability_major);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ==
              abi::device_attribute::compute_capability_minor);
static_assert(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ==
              abi::device_attribute::virtual_memory_management_supported);
static_assert(CU_POINTER_ATTRIBUTE_MEMORY_TYPE == abi::pointer_attribute::memory_type);
static_assert(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == abi::pointer_attribute::device_ordinal);

static_assert(CU_STREAM_NON_BLOCKING == abi::flags::stream_non_blocking);
static_assert(CU_EVENT_DISABLE_TIMING == abi::flags::event_disable_timing);
static_assert(CU_MEMHOSTALLOC_PORTABLE == abi::flags::host_alloc_portable);
static_assert(CU_MEMHOSTALLOC_DEVICEMAP == abi::flags::host_alloc_device_map);
static_assert(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == abi::flags::ipc_lazy_enable_peer_access);

static_assert(CU_STREAM_CAPTURE_MODE_GLOBAL == static_cast<int>(abi::capture_mode::global));
static_assert(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ==
              static_cast<int>(abi::capture_mode::thread_local_mode));
static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == static_cast<int>(abi::capture_mode::relaxed));
static_assert(CU_STREAM_CAPTURE_STATUS_NONE == static_cast<int>(abi::capture_status::none));
static_assert(CU_STREAM_CAPTURE_STATUS_ACTIVE == static_cast<int>(abi::capture_status::active));
static_assert(CU_STREAM_CAPTURE_STATUS_INVALIDATED ==
              static_cast<int>(abi::capture_status::invalidated));

TEST(cuda_abi, agrees_with_the_header_of_this_version) {
  RecordProperty("cuda_h", CUDA_VERSION);
  EXPECT_GE(CUDA_VERSION, 12000) << "the floor";
}

}  // namespace
}  // namespace spark_comm::cuda
