// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: initialisation, devices, contexts.
#include "api_guard.hpp"
#include "context.hpp"
#include "devices.hpp"
#include "driver_abi.hpp"
#include "exports.hpp"
#include "fault_injection.hpp"
#include "process.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace spark_comm::host {

namespace {

// Copies as much as fits, with a terminating zero.
driver::result copy_text(std::string_view text, char* to, int length) noexcept {
  if (to == nullptr || length <= 0) {
    return driver::invalid_value;
  }
  const std::size_t bytes = std::min(text.size(), static_cast<std::size_t>(length) - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = '\0';
  return driver::success;
}

// Runs `body(entry)` for a device that exists.
template <typename Body>
driver::result device_call(const char* name, driver::device ordinal, const Body& body) noexcept {
  return driver_call(name, [&] {
    device_entry* entry = find_device(ordinal);
    return entry == nullptr ? driver::invalid_device : body(*entry);
  });
}

constexpr int driver_version = 13000;

}  // namespace

extern "C" {

driver::result cuInit(unsigned int flags) {
  return with_driver_faults(__func__, [flags] {
    if (flags != 0) {
      return driver::invalid_value;
    }
    try {
      return initialize();
    } catch (...) {
      return driver::out_of_memory;
    }
  });
}

driver::result cuDriverGetVersion(int* version) {
  return with_driver_faults(__func__, [version] {
    if (version == nullptr) {
      return driver::invalid_value;
    }
    *version = driver_version;
    return driver::success;
  });
}

driver::result cuDeviceGetCount(int* count) {
  return driver_call(__func__, [&] {
    if (count == nullptr) {
      return driver::invalid_value;
    }
    *count = static_cast<int>(process().devices.size());
    return driver::success;
  });
}

driver::result cuDeviceGet(driver::device* device, int ordinal) {
  return device_call(__func__, ordinal, [&](const device_entry&) {
    if (device == nullptr) {
      return driver::invalid_value;
    }
    *device = ordinal;
    return driver::success;
  });
}

driver::result cuDeviceGetName(char* name, int length, driver::device device) {
  return device_call(__func__, device, [&](const device_entry&) {
    return copy_text("spark_comm host device", name, length);
  });
}

driver::result cuDeviceGetUuid_v2(driver::uuid* id, driver::device device) {
  return device_call(__func__, device, [&](const device_entry& entry) {
    if (id == nullptr) {
      return driver::invalid_value;
    }
    std::copy(entry.id.begin(), entry.id.end(), id->bytes);
    return driver::success;
  });
}

driver::result cuDeviceTotalMem_v2(std::size_t* bytes, driver::device device) {
  return device_call(__func__, device, [&](const device_entry&) {
    if (bytes == nullptr) {
      return driver::invalid_value;
    }
    *bytes = read_memory_figures().total_bytes;
    return driver::success;
  });
}

driver::result cuDeviceGetAttribute(int* value, int attribute, driver::device device) {
  return device_call(__func__, device, [&](const device_entry& entry) {
    return value != nullptr && read_attribute(entry, attribute, *value) ? driver::success
                                                                        : driver::invalid_value;
  });
}

driver::result cuDeviceGetPCIBusId(char* text, int length, driver::device device) {
  return device_call(__func__, device, [&](const device_entry& entry) {
    return copy_text(entry.pci_bus_id, text, length);
  });
}

driver::result cuDeviceCanAccessPeer(int* can, driver::device device, driver::device peer) {
  return device_call(__func__, device, [&](const device_entry&) {
    if (can == nullptr) {
      return driver::invalid_value;
    }
    if (find_device(peer) == nullptr) {
      return driver::invalid_device;
    }
    *can = device == peer ? 0 : 1;
    return driver::success;
  });
}

driver::result cuDevicePrimaryCtxRetain(driver::context* context, driver::device device) {
  return device_call(__func__, device, [&](device_entry& entry) {
    if (context == nullptr) {
      return driver::invalid_value;
    }
    entry.retained.fetch_add(1, std::memory_order_relaxed);
    *context = context_of(device);
    return driver::success;
  });
}

driver::result cuDevicePrimaryCtxRelease_v2(driver::device device) {
  return device_call(__func__, device, [&](device_entry& entry) {
    int count = entry.retained.load(std::memory_order_relaxed);
    do {
      if (count == 0) {
        return driver::invalid_context;
      }
    } while (!entry.retained.compare_exchange_weak(count, count - 1, std::memory_order_relaxed));
    return driver::success;
  });
}

driver::result cuCtxGetCurrent(driver::context* context) {
  return driver_call(__func__, [&] {
    if (context == nullptr) {
      return driver::invalid_value;
    }
    const int device = top_of_contexts();
    *context = device < 0 ? nullptr : context_of(device);
    return driver::success;
  });
}

driver::result cuCtxSetCurrent(driver::context context) {
  return driver_call(__func__, [&] {
    if (context == nullptr) {
      replace_context(-1);
      return driver::success;
    }
    const int device = live_device_of(context);
    if (device < 0) {
      return driver::invalid_context;
    }
    replace_context(device);
    return driver::success;
  });
}

driver::result cuCtxPushCurrent_v2(driver::context context) {
  return driver_call(__func__, [&] {
    const int device = live_device_of(context);
    if (device < 0) {
      return driver::invalid_context;
    }
    push_context(device);
    return driver::success;
  });
}

driver::result cuCtxPopCurrent_v2(driver::context* context) {
  return driver_call(__func__, [&] {
    const int device = pop_context();
    if (device < 0) {
      return driver::invalid_context;
    }
    if (context != nullptr) {
      *context = context_of(device);
    }
    return driver::success;
  });
}

driver::result cuCtxGetDevice(driver::device* device) {
  return context_call(__func__, [&](int current) {
    if (device == nullptr) {
      return driver::invalid_value;
    }
    *device = current;
    return driver::success;
  });
}

driver::result cuCtxEnablePeerAccess(driver::context peer, unsigned int flags) {
  return context_call(__func__, [&](int current) {
    if (flags != 0) {
      return driver::invalid_value;
    }
    const int device = live_device_of(peer);
    if (device < 0 || device == current) {
      return driver::invalid_context;
    }
    const unsigned long long bit = 1ULL << static_cast<unsigned>(device);
    const unsigned long long before =
        find_device(current)->peers.fetch_or(bit, std::memory_order_relaxed);
    return (before & bit) != 0 ? driver::peer_access_already_enabled : driver::success;
  });
}

}  // extern "C"

}  // namespace spark_comm::host
