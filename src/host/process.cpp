// SPDX-License-Identifier: AGPL-3.0-only
#include "process.hpp"

#include "devices.hpp"
#include "driver_abi.hpp"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <utility>

namespace spark_comm::host {

namespace {

void stop_workers() noexcept {
  process().is_exiting.store(true, std::memory_order_release);
}

void refuse_in_child() noexcept {
  process().is_forked = true;
  process().is_initialized.store(false, std::memory_order_release);
}

}  // namespace

process_state& process() noexcept {
  static process_state& state = *new process_state;  // NOLINT(cppcoreguidelines-owning-memory)
  return state;
}

driver::result initialize() {
  process_state& state = process();
  if (state.is_forked) {
    return driver::not_initialized;
  }
  const std::lock_guard lock{state.init_mutex};
  if (state.is_initialized.load(std::memory_order_relaxed)) {
    return driver::success;
  }
  device_list devices;
  const driver::result listed = list_devices(devices);
  if (listed != driver::success) {
    return listed;
  }
  if (std::atexit(stop_workers) != 0 || pthread_atfork(nullptr, nullptr, refuse_in_child) != 0) {
    return driver::out_of_memory;
  }
  state.devices = std::move(devices);
  // Release: whoever sees the flag sees the devices.
  state.is_initialized.store(true, std::memory_order_release);
  return driver::success;
}

}  // namespace spark_comm::host
