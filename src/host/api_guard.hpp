// SPDX-License-Identifier: AGPL-3.0-only
// What every exported driver call has in common: it can be made to fail on command, it is refused
// before cuInit and inside callbacks, and nothing is thrown through the C ABI.
#pragma once

#include "callback_scope.hpp"
#include "capture.hpp"
#include "context.hpp"
#include "driver_abi.hpp"
#include "fault_injection.hpp"
#include "process.hpp"
#include "stream.hpp"

#include <new>
#include <utility>

namespace spark_comm::host {

/// Runs the body of a call that is allowed now.
template <typename Body>
[[nodiscard]] driver::result initialized_call(Body&& body) noexcept {
  if (!process().is_initialized.load(std::memory_order_acquire)) {
    return driver::not_initialized;
  }
  if (callback_scope::is_open()) {
    return driver::not_permitted;
  }
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return driver::out_of_memory;
  } catch (...) {
    return driver::unknown;
  }
}

/// Runs the body of a call that needs no context. `name` is the exported one.
template <typename Body>
[[nodiscard]] driver::result driver_call(const char* name, Body&& body) noexcept {
  return with_driver_faults(name, [&] { return initialized_call(std::forward<Body>(body)); });
}

/// Runs `body(device)` for the device of the current context.
template <typename Body>
[[nodiscard]] driver::result context_call(const char* name, Body&& body) noexcept {
  return driver_call(name, [&] {
    int device = -1;
    const driver::result current = require_context(device);
    return current == driver::success ? std::forward<Body>(body)(device) : current;
  });
}

/// Runs `body(stream)` for a stream handle: invalid_handle when it is none, invalid_context for the
/// null stream without a context.
template <typename Body>
[[nodiscard]] driver::result stream_call(const char* name,
                                         driver::stream handle,
                                         Body&& body) noexcept {
  return driver_call(name, [&] {
    const stream_ptr target = find_stream(handle);
    if (target == nullptr) {
      return handle == nullptr ? driver::invalid_context : driver::invalid_handle;
    }
    return std::forward<Body>(body)(target);
  });
}

}  // namespace spark_comm::host
