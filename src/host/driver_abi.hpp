// SPDX-License-Identifier: AGPL-3.0-only
// The part of the CUDA driver's ABI that the host runtime answers to: opaque types by the vendor's
// names, result numbers, flags.
// Source: cuda.h, CUDA 13.0.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;

namespace spark_comm::host::driver {

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

inline constexpr result success = 0;
inline constexpr result invalid_value = 1;
inline constexpr result out_of_memory = 2;
inline constexpr result not_initialized = 3;
inline constexpr result no_device = 100;
inline constexpr result invalid_device = 101;
inline constexpr result invalid_context = 201;
inline constexpr result map_failed = 205;
inline constexpr result no_binary_for_gpu = 209;
inline constexpr result invalid_handle = 400;
inline constexpr result illegal_state = 401;
inline constexpr result not_found = 500;
inline constexpr result not_ready = 600;
inline constexpr result peer_access_already_enabled = 704;
inline constexpr result context_is_destroyed = 709;
inline constexpr result not_permitted = 800;
inline constexpr result not_supported = 801;
inline constexpr result stream_capture_unsupported = 900;
inline constexpr result stream_capture_invalidated = 901;
inline constexpr result stream_capture_merge = 902;
inline constexpr result stream_capture_unmatched = 903;
inline constexpr result stream_capture_unjoined = 904;
inline constexpr result stream_capture_isolation = 905;
inline constexpr result captured_event = 907;
inline constexpr result stream_capture_wrong_thread = 908;
inline constexpr result unknown = 999;

/// CUuuid.
struct uuid {
  std::uint8_t bytes[16];
};

/// CUipcMemHandle.
struct ipc_mem_handle {
  char reserved[64];
};

/// CUmemorytype.
inline constexpr unsigned int memory_type_host = 1;
inline constexpr unsigned int memory_type_device = 2;

/// CUpointer_attribute.
inline constexpr int pointer_memory_type = 2;
inline constexpr int pointer_device_pointer = 3;
inline constexpr int pointer_host_pointer = 4;
inline constexpr int pointer_device_ordinal = 9;

/// CUstream_flags, CUevent_flags.
inline constexpr unsigned int stream_non_blocking = 1;
inline constexpr unsigned int event_blocking_sync = 1;
inline constexpr unsigned int event_disable_timing = 2;
inline constexpr unsigned int event_interprocess = 4;

/// CUstreamCaptureMode.
enum class capture_mode : int { global = 0, thread_local_mode = 1, relaxed = 2 };

/// CUstreamCaptureStatus.
enum class capture_status : int { none = 0, active = 1, invalidated = 2 };

}  // namespace spark_comm::host::driver
