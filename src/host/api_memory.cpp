// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: memory, and what other processes see of it.
#include "api_guard.hpp"
#include "driver_abi.hpp"
#include "exports.hpp"
#include "ipc.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "stream_state.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spark_comm::host {

namespace {

/// As CUDA does before memory goes that its work may use.
void wait_for_streams_of(int device) {
  std::vector<stream_ptr> streams = process().closing.alive();
  process().streams.for_each([&](const stream_ptr& each) { streams.push_back(each); });
  for (const stream_ptr& each : streams) {
    if (each->device() == device) {
      each->wait(each->submitted());
    }
  }
}

void* pointer(driver::device_ptr address) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): device addresses are host addresses
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

driver::device_ptr address_of(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Runs `body(device)` for a call that CUDA holds unsafe during a capture.
template <typename Body>
driver::result unsafe_context_call(const char* name, const Body& body) noexcept {
  return context_call(name, [&](int device) {
    const driver::result permitted = permit_unsafe_call();
    return permitted == driver::success ? body(device) : permitted;
  });
}

driver::result read_pointer_attribute(void* value, int attribute, const memory_block& block) {
  switch (attribute) {
    case driver::pointer_memory_type:
      *static_cast<unsigned int*>(value) =
          block.kind == memory_kind::pinned ? driver::memory_type_host : driver::memory_type_device;
      return driver::success;
    case driver::pointer_device_ordinal:
      *static_cast<int*>(value) = block.device;
      return driver::success;
    default: return driver::not_supported;
  }
}

}  // namespace

extern "C" {

driver::result cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  return context_call(__func__, [&](int) {
    if (free_bytes == nullptr || total_bytes == nullptr) {
      return driver::invalid_value;
    }
    const memory_figures figures = read_memory_figures();
    *free_bytes = figures.available_bytes;
    *total_bytes = figures.total_bytes;
    return driver::success;
  });
}

driver::result cuMemAlloc_v2(driver::device_ptr* address, std::size_t bytes) {
  return unsafe_context_call(__func__, [&](int device) {
    if (address == nullptr) {
      return driver::invalid_value;
    }
    void* allocated = nullptr;
    const driver::result result =
        process().memory.allocate(bytes, device, memory_kind::device, &allocated);
    if (result == driver::success) {
      *address = address_of(allocated);
    }
    return result;
  });
}

driver::result cuMemFree_v2(driver::device_ptr address) {
  return unsafe_context_call(__func__, [&](int) {
    return address == 0 ? driver::success
                        : process().memory.release(pointer(address), memory_kind::device);
  });
}

driver::result cuMemHostAlloc(void** address, std::size_t bytes, unsigned int flags) {
  constexpr unsigned int known_flags = 7;  // portable, device map, write combined
  return unsafe_context_call(__func__, [&](int device) {
    if ((flags & ~known_flags) != 0) {
      return driver::invalid_value;
    }
    return process().memory.allocate(bytes, device, memory_kind::pinned, address);
  });
}

driver::result cuMemFreeHost(void* address) {
  return unsafe_context_call(
      __func__, [&](int) { return process().memory.release(address, memory_kind::pinned); });
}

driver::result cuMemHostGetDevicePointer_v2(driver::device_ptr* device,
                                            void* host,
                                            unsigned int flags) {
  return context_call(__func__, [&](int) {
    const memory_block block = process().memory.find(host);
    if (device == nullptr || flags != 0 || block.base == nullptr ||
        block.kind != memory_kind::pinned) {
      return driver::invalid_value;
    }
    *device = address_of(host);
    return driver::success;
  });
}

driver::result cuMemGetAddressRange_v2(driver::device_ptr* base,
                                       std::size_t* bytes,
                                       driver::device_ptr address) {
  return context_call(__func__, [&](int) {
    const memory_block block = process().memory.find(pointer(address));
    if (block.base == nullptr) {
      return driver::not_found;
    }
    if (base != nullptr) {
      *base = address_of(block.base);
    }
    if (bytes != nullptr) {
      *bytes = block.bytes;
    }
    return driver::success;
  });
}

driver::result cuPointerGetAttribute(void* value, int attribute, driver::device_ptr address) {
  return context_call(__func__, [&](int) {
    const memory_block block = process().memory.find(pointer(address));
    if (value == nullptr || block.base == nullptr) {
      return driver::invalid_value;
    }
    if (attribute == driver::pointer_device_pointer) {
      *static_cast<driver::device_ptr*>(value) = address;
      return driver::success;
    }
    if (attribute == driver::pointer_host_pointer) {
      *static_cast<void**>(value) = pointer(address);
      return driver::success;
    }
    return read_pointer_attribute(value, attribute, block);
  });
}

driver::result cuIpcGetMemHandle(driver::ipc_mem_handle* handle, driver::device_ptr address) {
  return context_call(__func__, [&](int) {
    return handle == nullptr ? driver::invalid_value : export_memory(pointer(address), *handle);
  });
}

driver::result cuIpcOpenMemHandle_v2(driver::device_ptr* address,
                                     driver::ipc_mem_handle handle,
                                     unsigned int flags) {
  constexpr unsigned int lazy_enable_peer_access = 1;
  return unsafe_context_call(__func__, [&](int device) {
    if (address == nullptr || flags != lazy_enable_peer_access) {
      return driver::invalid_value;
    }
    void* mapped = nullptr;
    const driver::result result = process().imported.open_handle(handle, device, &mapped);
    if (result == driver::success) {
      *address = address_of(mapped);
    }
    return result;
  });
}

driver::result cuIpcCloseMemHandle(driver::device_ptr address) {
  return unsafe_context_call(__func__, [&](int device) {
    wait_for_streams_of(device);
    return process().imported.close_handle(pointer(address));
  });
}

}  // extern "C"

}  // namespace spark_comm::host
