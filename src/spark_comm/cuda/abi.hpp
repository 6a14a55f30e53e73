// SPDX-License-Identifier: AGPL-3.0-only
// Our own declarations of the part of the CUDA driver's ABI that is called, so that no vendor
// header is needed to build. Where cuda.h is found, a test compares every line here with it.
// Source: cuda.h, CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

// The vendor's opaque types, by their own names: an engine's CUstream or cudaStream_t fits without
// a cast.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;

namespace spark_comm::cuda::abi {

/// CUresult. An open integer: unknown numbers survive.
using result = int;
using device = int;
using device_ptr = unsigned long long;
using context = CUctx_st*;
using stream = CUstream_st*;
using event = CUevent_st*;
using graph = CUgraph_st*;
using graph_exec = CUgraphExec_st*;
using module = CUmod_st*;
using function = CUfunc_st*;
using host_function = void (*)(void* user_data);

/// The results that the library tells apart.
namespace results {
inline constexpr result success = 0;
inline constexpr result invalid_value = 1;
inline constexpr result out_of_memory = 2;
inline constexpr result not_initialized = 3;
inline constexpr result deinitialized = 4;
inline constexpr result stub_library = 34;
inline constexpr result no_device = 100;
inline constexpr result invalid_device = 101;
inline constexpr result invalid_context = 201;
inline constexpr result no_binary_for_gpu = 209;
inline constexpr result peer_access_already_enabled = 704;
inline constexpr result invalid_handle = 400;
inline constexpr result not_found = 500;
inline constexpr result not_ready = 600;
inline constexpr result illegal_address = 700;
inline constexpr result not_permitted = 800;
inline constexpr result not_supported = 801;
inline constexpr result stream_capture_unsupported = 900;
inline constexpr result stream_capture_invalidated = 901;
inline constexpr result stream_capture_unjoined = 904;
inline constexpr result stream_capture_implicit = 906;
inline constexpr result captured_event = 907;
inline constexpr result stream_capture_wrong_thread = 908;
inline constexpr result unknown = 999;
}  // namespace results

struct uuid {
  std::uint8_t bytes[16];
};

/// CUipcMemHandle.
struct ipc_mem_handle {
  char reserved[64];
};

/// CUdevice_attribute.
namespace device_attribute {
inline constexpr int multiprocessor_count = 16;
inline constexpr int integrated = 18;
inline constexpr int pci_bus_id = 33;
inline constexpr int pci_device_id = 34;
inline constexpr int pci_domain_id = 50;
inline constexpr int compute_capability_major = 75;
inline constexpr int compute_capability_minor = 76;
inline constexpr int virtual_memory_management_supported = 102;
}  // namespace device_attribute

/// CUpointer_attribute.
namespace pointer_attribute {
inline constexpr int memory_type = 2;
inline constexpr int device_ordinal = 9;
}  // namespace pointer_attribute

/// CUstream_flags, CUevent_flags, CUstreamCaptureStatus, CUstreamCaptureMode and other flags.
namespace flags {
inline constexpr unsigned int stream_non_blocking = 1;
inline constexpr unsigned int event_disable_timing = 2;
inline constexpr unsigned int host_alloc_portable = 1;
inline constexpr unsigned int host_alloc_device_map = 2;
inline constexpr unsigned int ipc_lazy_enable_peer_access = 1;
}  // namespace flags

/// CUstreamCaptureMode.
// NOLINTNEXTLINE(performance-enum-size): as wide as the vendor's
enum class capture_mode : int { global = 0, thread_local_mode = 1, relaxed = 2 };

/// CUstreamCaptureStatus.
// NOLINTNEXTLINE(performance-enum-size): as wide as the vendor's
enum class capture_status : int { none = 0, active = 1, invalidated = 2 };

}  // namespace spark_comm::cuda::abi
