// SPDX-License-Identifier: AGPL-3.0-only
// Memory of other processes. A handle names a memfd of its owner, which is opened through /proc:
// the owner need not take part, and a handle of a process that is gone opens nothing.
#pragma once

#include "driver_abi.hpp"

#include <mutex>
#include <vector>

namespace spark_comm::host {

/// invalid_value when the address is not in device memory of this process.
[[nodiscard]] driver::result export_memory(const void* address, driver::ipc_mem_handle& handle);

/// The memory of others that this process has mapped.
/// Threads: any.
class imported_memory {
 public:
  imported_memory();
  imported_memory(const imported_memory&) = delete;
  imported_memory& operator=(const imported_memory&) = delete;
  imported_memory(imported_memory&&) = delete;
  imported_memory& operator=(imported_memory&&) = delete;
  ~imported_memory();

  /// Maps the memory behind a handle; opening it again gives the same address and counts.
  /// invalid_context for a handle of this very process, as CUDA; map_failed when the owner is gone
  /// or may not be looked into; invalid_value for what is no handle.
  [[nodiscard]] driver::result open_handle(const driver::ipc_mem_handle& handle,
                                           int device,
                                           void** address);

  /// Takes back one `open_handle`; the last unmaps. invalid_value when the address was not opened.
  [[nodiscard]] driver::result close_handle(const void* address);

 private:
  struct mapping;
  std::mutex mutex_;
  std::vector<mapping> mappings_;
};

}  // namespace spark_comm::host
