// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: names and texts of results. They work before cuInit.
#include "driver_abi.hpp"
#include "exports.hpp"

#include <algorithm>
#include <iterator>

namespace spark_comm::host {

namespace {

struct result_text {
  driver::result code;
  const char* name;
  const char* text;
};

// What the host runtime can answer, with the names of cuda.h.
constexpr result_text result_texts[] = {
    {driver::success, "CUDA_SUCCESS", "no error"},
    {driver::invalid_value, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {driver::out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {driver::not_initialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {driver::no_device, "CUDA_ERROR_NO_DEVICE", "no device is visible"},
    {driver::invalid_device, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {driver::invalid_context, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {driver::map_failed, "CUDA_ERROR_MAP_FAILED", "mapping of memory failed"},
    {driver::no_binary_for_gpu,
     "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "the image holds no kernels for the host runtime"},
    {driver::invalid_handle, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
    {driver::illegal_state, "CUDA_ERROR_ILLEGAL_STATE", "not allowed in the present state"},
    {driver::not_found, "CUDA_ERROR_NOT_FOUND", "not found"},
    {driver::not_ready, "CUDA_ERROR_NOT_READY", "not ready"},
    {driver::peer_access_already_enabled,
     "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {driver::context_is_destroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {driver::not_permitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {driver::not_supported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {driver::stream_capture_unsupported,
     "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted while a stream is capturing"},
    {driver::stream_capture_invalidated,
     "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed because of an earlier error during the capture"},
    {driver::stream_capture_merge,
     "CUDA_ERROR_STREAM_CAPTURE_MERGE",
     "operation would join two captures into one"},
    {driver::stream_capture_unmatched,
     "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture was not begun in this stream"},
    {driver::stream_capture_unjoined,
     "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "the capture holds work of other streams that was not joined to its first stream"},
    {driver::stream_capture_isolation,
     "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "captured work would depend on work that was not captured"},
    {driver::captured_event,
     "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {driver::stream_capture_wrong_thread,
     "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "the capture was begun in another thread"},
    {driver::unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

driver::result look_up(driver::result code, const char* result_text::* field, const char** out) {
  if (out == nullptr) {
    return driver::invalid_value;
  }
  const auto* const found = std::find_if(std::begin(result_texts),
                                         std::end(result_texts),
                                         [code](const auto& entry) { return entry.code == code; });
  const bool is_known = found != std::end(result_texts);
  *out = is_known ? found->*field : nullptr;
  return is_known ? driver::success : driver::invalid_value;
}

}  // namespace

extern "C" {

driver::result cuGetErrorName(driver::result code, const char** name) {
  return look_up(code, &result_text::name, name);
}

driver::result cuGetErrorString(driver::result code, const char** text) {
  return look_up(code, &result_text::text, text);
}

}  // extern "C"

}  // namespace spark_comm::host
