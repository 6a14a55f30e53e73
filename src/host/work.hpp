// SPDX-License-Identifier: AGPL-3.0-only
// The driver's own work on streams: copies, fills, writes of a word, callbacks.
#pragma once

#include "driver_abi.hpp"
#include "queue_item.hpp"
#include "stream.hpp"

#include <cstddef>
#include <cstdint>

namespace spark_comm::host {

/// Enqueues a copy. As in CUDA, memory that was not allocated through the driver may be reused as
/// soon as the call returns: a small source is copied aside, and for the rest the call waits.
[[nodiscard]] driver::result submit_copy(const stream_ptr& target,
                                         driver::device_ptr to,
                                         driver::device_ptr from,
                                         std::size_t bytes);

[[nodiscard]] queue_item make_fill(driver::device_ptr to, unsigned char value, std::size_t count);

[[nodiscard]] queue_item make_fill_words(driver::device_ptr to,
                                         std::uint32_t value,
                                         std::size_t count);

/// Writes one word after all that came before it in the stream is visible.
[[nodiscard]] queue_item make_write(driver::device_ptr to, std::uint32_t value);

[[nodiscard]] queue_item make_callback(driver::host_function function, void* user_data);

}  // namespace spark_comm::host
