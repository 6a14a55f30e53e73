// SPDX-License-Identifier: AGPL-3.0-only
// Exported calls about memory: allocation, registration, windows.
#include "call_guard.hpp"
#include "group.hpp"
#include "last_error.hpp"
#include "nccl_abi.hpp"
#include "nccl_calls.hpp"
#include "stream.hpp"

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace spark_comm::host::nccl {
namespace {

// NCCL's own switches: "0" takes registration or windows away, without an error.
bool is_off(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string_view{value} == "0";
}

// Windows are made together: nobody has one before everybody has asked for it.
int add_window(const call_guard& call, void* base, std::size_t bytes, ncclWindow_vidmem** window) {
  allocation_info memory;
  const bool is_ours = find_allocation(base, memory);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(base) -
                                               static_cast<const std::byte*>(memory.base));
  if (is_ours && offset % window_alignment_bytes != 0) {
    return refuse(results::invalid_argument,
                  "{} : Window address must be a multiple of {} from its allocation's start, is {}",
                  call.name,
                  window_alignment_bytes,
                  offset);
  }
  return add_job({
      .owner = call.comm,
      .is_blocking = call.comm->options().is_blocking,
      .work =
          [comm = call.comm] {
            std::vector<std::byte> all;
            const std::byte nothing{};
            return comm->exchange({&nothing, 1}, all);
          },
      .conclude =
          [comm = call.comm, base, bytes, window, is_ours](int code) {
            // Memory of another kind gets no window, and no error either.
            if (code == results::success && is_ours && !is_off("NCCL_WIN_ENABLE")) {
              *window = static_cast<ncclWindow_vidmem*>(comm->windows.add(base, bytes));
            }
          },
  });
}

}  // namespace

int ncclMemAlloc(void** address, std::size_t bytes) {
  return guarded_call("ncclMemAlloc", nullptr, [&](call_guard& call) {
    if (address == nullptr) {
      return refuse(results::invalid_argument, "{} : ptr argument is NULL", call.name);
    }
    void* const memory = bytes == 0 ? nullptr : allocate_device_memory(bytes);
    if (memory == nullptr && bytes != 0) {
      return refuse(results::unhandled_cuda_error, "{} : cannot get {} bytes", call.name, bytes);
    }
    *address = memory;
    return results::success;
  });
}

int ncclMemFree(void* address) {
  return guarded_call("ncclMemFree", nullptr, [&](call_guard& call) {
    if (address != nullptr && !free_device_memory(address)) {
      return refuse(results::unhandled_cuda_error, "{} : not an allocation", call.name);
    }
    return results::success;
  });
}

int ncclCommRegister(const ncclComm* handle, void* base, std::size_t bytes, void** registered) {
  return guarded_call("ncclCommRegister", handle, [&](call_guard& call) {
    if (call.comm == nullptr || registered == nullptr) {
      return refuse(results::invalid_argument, "{} : an argument is NULL or gone", call.name);
    }
    *registered =
        is_off("NCCL_LOCAL_REGISTER") ? nullptr : call.comm->registrations.add(base, bytes);
    return results::success;
  });
}

int ncclCommDeregister(const ncclComm* handle, void* registered) {
  return guarded_call("ncclCommDeregister", handle, [&](call_guard& call) {
    if (call.comm == nullptr) {
      return refuse(results::invalid_argument, "{} : the communicator is NULL or gone", call.name);
    }
    if (registered != nullptr && !call.comm->registrations.remove(registered)) {
      return refuse(results::invalid_usage, "{} : unknown handle", call.name);
    }
    return results::success;
  });
}

int ncclCommWindowRegister(
    ncclComm* handle, void* base, std::size_t bytes, ncclWindow_vidmem** window, int /*flags*/) {
  return guarded_call("ncclCommWindowRegister", handle, [&](call_guard& call) {
    const int code = run_as_group([&] {
      if (const int ready = check_ready(call); ready != results::success) {
        return ready;
      }
      if (window == nullptr) {
        return refuse(results::invalid_argument, "{} : win argument is NULL", call.name);
      }
      if (base == nullptr || bytes == 0) {
        return results::success;  // and no window, as 2.28 does
      }
      return add_window(call, base, bytes, window);
    });
    return keep_failure(call, code == results::in_progress ? results::success : code);
  });
}

int ncclCommWindowDeregister(ncclComm* handle, ncclWindow_vidmem* window) {
  return guarded_call("ncclCommWindowDeregister", handle, [&](call_guard& call) {
    if (window == nullptr) {
      return results::success;
    }
    if (call.comm == nullptr) {
      return refuse(results::invalid_argument, "{} : the communicator is NULL or gone", call.name);
    }
    if (!call.comm->windows.remove(window)) {
      return refuse(results::invalid_usage, "{} : unknown window", call.name);
    }
    return results::success;
  });
}

}  // namespace spark_comm::host::nccl
