// SPDX-License-Identifier: AGPL-3.0-only
// The calling thread's stack of current contexts. There are primary contexts only.
#pragma once

#include "devices.hpp"
#include "driver_abi.hpp"
#include "stream.hpp"

namespace spark_comm::host {

/// The handle of a device's primary context.
[[nodiscard]] driver::context context_of(int device) noexcept;

/// The device of a context, or -1 for a handle that is none.
[[nodiscard]] int device_of_context(driver::context handle) noexcept;

/// The same, but -1 for a context that nobody retains, too.
[[nodiscard]] int live_device_of(driver::context handle) noexcept;

/// The visible device, or null.
[[nodiscard]] device_entry* find_device(int ordinal) noexcept;

/// Device at the top of the thread's stack whether or not its context is alive; -1 when empty.
[[nodiscard]] int top_of_contexts() noexcept;

void push_context(int device);

/// The device that was at the top, or -1 when the stack was empty.
int pop_context() noexcept;

/// Replaces the top; -1 takes it away.
void replace_context(int device);

/// success, invalid_context without a current context, context_is_destroyed with a released one.
[[nodiscard]] driver::result require_context(int& device) noexcept;

/// The null stream of a device, made at its first use.
[[nodiscard]] stream_ptr default_stream_of(device_entry& entry, int ordinal);

}  // namespace spark_comm::host
