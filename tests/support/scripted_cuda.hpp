// SPDX-License-Identifier: AGPL-3.0-only
// A CUDA driver that only keeps books: contexts, current device per thread, live handles, captures.
// Nothing runs; streams are idle unless a test says otherwise.
#pragma once

#include "support/call_script.hpp"

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/cuda/api.hpp>
#include <spark_comm/cuda/driver.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace spark_comm::testing {

class scripted_cuda {
 public:
  explicit scripted_cuda(call_script& script) : script_(script) {
    handle_devices();
    handle_contexts();
    handle_handles();
    handle_memory();
    handle_capture();
  }

  [[nodiscard]] static cuda::api table() {
    namespace abi = cuda::abi;
    cuda::api made;
#define SPARK_COMM_SCRIPT(name, arguments) made.name = &SCRIPTED_CALL(cuda::api, name)::call;
    SPARK_COMM_CUDA_FUNCTIONS(SPARK_COMM_SCRIPT)
#undef SPARK_COMM_SCRIPT
    return made;
  }

  [[nodiscard]] cuda::driver driver(diagnostics log = {}) const {
    return cuda::driver::from_table(table(), std::move(log));
  }

  // What a test may set.
  std::atomic<int> device_count{1};

  // What a test may read.
  [[nodiscard]] std::size_t live_handles() const {
    const std::scoped_lock lock{mutex_};
    return live_.size();
  }

  [[nodiscard]] int retained_contexts() const { return retained_; }

  [[nodiscard]] cuda::abi::context current() const {
    const std::scoped_lock lock{mutex_};
    const auto found = current_.find(std::this_thread::get_id());
    return found == current_.end() ? nullptr : found->second;
  }

  [[nodiscard]] static cuda::abi::context context_of(int ordinal) {
    return as_handle<cuda::abi::context>(0x100U + static_cast<unsigned int>(ordinal));
  }

  [[nodiscard]] cuda::abi::capture_mode capture_mode() const {
    const std::scoped_lock lock{mutex_};
    const auto found = modes_.find(std::this_thread::get_id());
    return found == modes_.end() ? cuda::abi::capture_mode::global : found->second;
  }

  /// As if somebody had begun to capture `s`.
  void set_capturing(cuda::abi::stream s, bool is_capturing) {
    const std::scoped_lock lock{mutex_};
    is_capturing ? void(capturing_.insert(s)) : void(capturing_.erase(s));
  }

 private:
  static constexpr int bad_handle = cuda::abi::results::invalid_handle;

  template <typename Handle>
  static Handle as_handle(std::uintptr_t number) {
    return reinterpret_cast<Handle>(number);
  }

  template <typename Handle>
  int make(Handle* out) {
    const std::scoped_lock lock{mutex_};
    *out = as_handle<Handle>(next_ += 16);
    live_.insert(*out);
    return 0;
  }

  int destroy(void* handle) {
    const std::scoped_lock lock{mutex_};
    return live_.erase(handle) == 1 ? 0 : bad_handle;
  }

  void handle_devices() {
    SCRIPTED_CALL(cuda::api, cuDriverGetVersion)::handle(script_, [](int* v) {
      *v = 13000;
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuGetErrorName)::handle(script_, [](int code, const char** name) {
      *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
      return code == 700 ? 0 : cuda::abi::results::invalid_value;
    });
    SCRIPTED_CALL(cuda::api, cuGetErrorString)::handle(script_, [](int code, const char** text) {
      *text = code == 700 ? "an illegal memory access was encountered" : nullptr;
      return code == 700 ? 0 : cuda::abi::results::invalid_value;
    });
    SCRIPTED_CALL(cuda::api, cuDeviceGetCount)::handle(script_, [this](int* count) {
      *count = device_count;
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuDeviceGet)::handle(script_, [](int* handle, int ordinal) {
      *handle = ordinal;
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuDeviceGetName)::handle(script_, [](char* name, int length, int) {
      std::snprintf(name, static_cast<std::size_t>(length), "scripted device");
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuDeviceGetPCIBusId)::handle(
        script_, [](char* text, int length, int device) {
          std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
          return 0;
        });
    SCRIPTED_CALL(cuda::api, cuDeviceGetUuid_v2)::handle(
        script_, [](cuda::abi::uuid* id, int device) {
          id->bytes[15] = static_cast<std::uint8_t>(device + 1);
          return 0;
        });
    SCRIPTED_CALL(cuda::api, cuDeviceTotalMem_v2)::handle(script_, [](std::size_t* bytes, int) {
      *bytes = std::size_t{1} << 30U;
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuDeviceGetAttribute)::handle(script_,
                                                           [](int* value, int attribute, int) {
                                                             *value = attribute;
                                                             return 0;
                                                           });
  }

  void handle_contexts() {
    SCRIPTED_CALL(cuda::api, cuDevicePrimaryCtxRetain)::handle(
        script_, [this](cuda::abi::context* context, int device) {
          *context = context_of(device);
          ++retained_;
          return 0;
        });
    SCRIPTED_CALL(cuda::api, cuDevicePrimaryCtxRelease_v2)::handle(script_, [this](int) {
      --retained_;
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuCtxGetCurrent)::handle(script_, [this](cuda::abi::context* out) {
      *out = current();
      return 0;
    });
    SCRIPTED_CALL(cuda::api, cuCtxSetCurrent)::handle(script_, [this](cuda::abi::context c) {
      const std::scoped_lock lock{mutex_};
      current_[std::this_thread::get_id()] = c;
      return 0;
    });
  }

  void handle_handles() {
    SCRIPTED_CALL(cuda::api, cuStreamCreate)::handle(
        script_, [this](cuda::abi::stream* out, unsigned int) { return make(out); });
    SCRIPTED_CALL(cuda::api, cuStreamDestroy_v2)::handle(
        script_, [this](cuda::abi::stream handle) { return destroy(handle); });
    SCRIPTED_CALL(cuda::api, cuEventCreate)::handle(
        script_, [this](cuda::abi::event* out, unsigned int) { return make(out); });
    SCRIPTED_CALL(cuda::api, cuEventDestroy_v2)::handle(
        script_, [this](cuda::abi::event handle) { return destroy(handle); });
    SCRIPTED_CALL(cuda::api, cuGraphInstantiateWithFlags)::handle(
        script_, [this](cuda::abi::graph_exec* out, cuda::abi::graph, unsigned long long) {
          return make(out);
        });
    SCRIPTED_CALL(cuda::api, cuGraphExecDestroy)::handle(
        script_, [this](cuda::abi::graph_exec handle) { return destroy(handle); });
    SCRIPTED_CALL(cuda::api, cuGraphDestroy)::handle(
        script_, [this](cuda::abi::graph handle) { return destroy(handle); });
  }

  void handle_memory() {
    SCRIPTED_CALL(cuda::api, cuMemAlloc_v2)::handle(
        script_, [this](cuda::abi::device_ptr* out, std::size_t bytes) {
          void* const block = allocate(bytes);
          *out = reinterpret_cast<std::uintptr_t>(block);
          return block == nullptr ? cuda::abi::results::out_of_memory : 0;
        });
    SCRIPTED_CALL(cuda::api, cuMemFree_v2)::handle(script_, [this](cuda::abi::device_ptr address) {
      return release(as_handle<void*>(static_cast<std::uintptr_t>(address)));
    });
    SCRIPTED_CALL(cuda::api, cuMemHostAlloc)::handle(
        script_, [this](void** out, std::size_t bytes, unsigned int) {
          *out = allocate(bytes);
          return *out == nullptr ? cuda::abi::results::out_of_memory : 0;
        });
    SCRIPTED_CALL(cuda::api, cuMemFreeHost)::handle(
        script_, [this](void* address) { return release(address); });
    SCRIPTED_CALL(cuda::api, cuMemHostGetDevicePointer_v2)::handle(
        script_, [](cuda::abi::device_ptr* out, void* host, unsigned int) {
          *out = reinterpret_cast<std::uintptr_t>(host);
          return 0;
        });
  }

  void handle_capture() {
    SCRIPTED_CALL(cuda::api, cuStreamIsCapturing)::handle(
        script_, [this](cuda::abi::stream s, cuda::abi::capture_status* status) {
          const std::scoped_lock lock{mutex_};
          *status = capturing_.contains(s) ? cuda::abi::capture_status::active
                                           : cuda::abi::capture_status::none;
          return 0;
        });
    SCRIPTED_CALL(cuda::api, cuStreamBeginCapture_v2)::handle(
        script_, [this](cuda::abi::stream s, cuda::abi::capture_mode) {
          set_capturing(s, true);
          return 0;
        });
    SCRIPTED_CALL(cuda::api, cuStreamEndCapture)::handle(
        script_, [this](cuda::abi::stream s, cuda::abi::graph* out) {
          set_capturing(s, false);
          return make(out);
        });
    SCRIPTED_CALL(cuda::api, cuThreadExchangeStreamCaptureMode)::handle(
        script_, [this](cuda::abi::capture_mode* mode) {
          const std::scoped_lock lock{mutex_};
          std::swap(*mode, modes_[std::this_thread::get_id()]);
          return 0;
        });
  }

  void* allocate(std::size_t bytes) {
    void* const block = std::malloc(bytes);
    const std::scoped_lock lock{mutex_};
    live_.insert(block);
    return block;
  }

  int release(void* block) {
    const int code = destroy(block);
    if (code == 0) {
      std::free(block);
    }
    return code;
  }

  call_script& script_;
  mutable std::mutex mutex_;
  std::set<void*> live_;
  std::set<cuda::abi::stream> capturing_;
  std::map<std::thread::id, cuda::abi::context> current_;
  std::map<std::thread::id, cuda::abi::capture_mode> modes_;
  std::uintptr_t next_ = 0x1000;
  std::atomic<int> retained_{0};
};

}  // namespace spark_comm::testing
