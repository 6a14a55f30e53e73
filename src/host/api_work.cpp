// SPDX-License-Identifier: AGPL-3.0-only
// Exported driver calls: work that is enqueued on streams.
#include "api_guard.hpp"
#include "driver_abi.hpp"
#include "exports.hpp"
#include "host_module.hpp"
#include "module.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"
#include "work.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace spark_comm::host {

extern "C" {

driver::result cuMemcpyAsync(driver::device_ptr to,
                             driver::device_ptr from,
                             std::size_t bytes,
                             driver::stream handle) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (bytes == 0) {
      return driver::success;
    }
    return to == 0 || from == 0 ? driver::invalid_value : submit_copy(target, to, from, bytes);
  });
}

driver::result cuMemsetD8Async(driver::device_ptr to,
                               unsigned char value,
                               std::size_t count,
                               driver::stream handle) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (count == 0) {
      return driver::success;
    }
    return to == 0 ? driver::invalid_value : submit(target, make_fill(to, value, count));
  });
}

driver::result cuMemsetD32Async(driver::device_ptr to,
                                unsigned int value,
                                std::size_t count,
                                driver::stream handle) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (count == 0) {
      return driver::success;
    }
    const bool is_aligned = to % sizeof(value) == 0;
    return to == 0 || !is_aligned ? driver::invalid_value
                                  : submit(target, make_fill_words(to, value, count));
  });
}

driver::result cuStreamWriteValue32_v2(driver::stream handle,
                                       driver::device_ptr address,
                                       std::uint32_t value,
                                       unsigned int flags) {
  constexpr unsigned int no_memory_barrier = 1;
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    if (address == 0 || address % sizeof(value) != 0 || (flags & ~no_memory_barrier) != 0) {
      return driver::invalid_value;
    }
    return submit(target, make_write(address, value));
  });
}

driver::result cuLaunchHostFunc(driver::stream handle,
                                driver::host_function function,
                                void* user_data) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    return function == nullptr ? driver::invalid_value
                               : submit(target, make_callback(function, user_data));
  });
}

driver::result cuModuleLoadData(driver::module* handle, const void* image) {
  return context_call(__func__, [&](int) {
    if (handle == nullptr) {
      return driver::invalid_value;
    }
    std::shared_ptr<module> loaded;
    const driver::result result = load_module(image, loaded);
    if (result == driver::success) {
      *handle = static_cast<driver::module>(process().modules.insert(std::move(loaded)));
    }
    return result;
  });
}

driver::result cuModuleUnload(driver::module handle) {
  return driver_call(__func__, [&] {
    const std::shared_ptr<module> unloaded = process().modules.remove(handle);
    if (unloaded == nullptr) {
      return driver::invalid_handle;
    }
    unloaded->drop_handles(process().kernels);
    return driver::success;
  });
}

driver::result cuModuleGetFunction(driver::function* function,
                                   driver::module handle,
                                   const char* name) {
  return driver_call(__func__, [&] {
    const std::shared_ptr<module> loaded = process().modules.find(handle);
    if (loaded == nullptr) {
      return driver::invalid_handle;
    }
    if (function == nullptr || name == nullptr) {
      return driver::invalid_value;
    }
    void* found = loaded->handle_of(name, process().kernels);
    if (found == nullptr) {
      return driver::not_found;
    }
    *function = static_cast<driver::function>(found);
    return driver::success;
  });
}

// NOLINTNEXTLINE(readability-function-size): the vendor's argument list
driver::result cuLaunchKernel(driver::function function,
                              unsigned int grid_x,
                              unsigned int grid_y,
                              unsigned int grid_z,
                              unsigned int block_x,
                              unsigned int block_y,
                              unsigned int block_z,
                              unsigned int /*shared_bytes*/,
                              driver::stream handle,
                              void** arguments,
                              void** extra) {
  return stream_call(__func__, handle, [&](const stream_ptr& target) {
    const std::shared_ptr<kernel> launched = process().kernels.find(function);
    if (launched == nullptr) {
      return driver::invalid_handle;
    }
    const host_dimensions grid{.x = grid_x, .y = grid_y, .z = grid_z};
    const host_dimensions block{.x = block_x, .y = block_y, .z = block_z};
    if (extra != nullptr) {
      return driver::not_supported;
    }
    if (!is_launchable(launched->entry, grid, block, arguments)) {
      return driver::invalid_value;
    }
    return submit(target, make_launch(launched->entry, grid, block, arguments));
  });
}

}  // extern "C"

}  // namespace spark_comm::host
