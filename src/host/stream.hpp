// SPDX-License-Identifier: AGPL-3.0-only
// Streams of the host runtime: queues of work in order, asynchronous to the host.
#pragma once

#include "task.hpp"

#include <cstddef>
#include <functional>
#include <memory>

namespace spark_comm::host {

/// What is enqueued. The factory is called when the item reaches the front of the queue; a captured
/// item keeps its factory and is made anew at every replay, so it must be callable any number of
/// times and must own (or share) everything that it refers to.
using task_factory = std::function<task()>;

/// A queue of tasks on one device. Handed out to programs as CUstream.
///
/// Whoever synchronizes helps to run the queue; when nobody does, a worker thread makes progress.
/// Only one thread at a time drives a stream (a try-lock).
class stream;

using stream_ptr = std::shared_ptr<stream>;

/// The stream behind a handle that a program passed; null for a handle that is none. The null
/// handle is the default stream of the current context's device.
[[nodiscard]] stream_ptr find_stream(void* handle) noexcept;

/// Appends work. While the stream is being captured, it goes into the graph in place of the queue.
/// Returns false when the stream's capture was invalidated.
[[nodiscard]] bool enqueue(const stream_ptr& target, task_factory make);

/// Whether the stream is being captured now.
[[nodiscard]] bool is_capturing(const stream_ptr& target) noexcept;

/// Keeps `object` alive as long as the graph that is being captured from the stream, every
/// executable made of it, and every launch of one. Does nothing when the stream is not captured.
void retain_in_capture(const stream_ptr& target, std::shared_ptr<void> object);

/// Device ordinal of a stream.
[[nodiscard]] int device_of(const stream_ptr& target) noexcept;

/// The current device of the calling thread, or -1 when it has none.
[[nodiscard]] int current_device() noexcept;

/// Helps the stream's queue forward without blocking; returns whether the queue is empty.
bool help(const stream_ptr& target) noexcept;

/// The allocation that holds `address`: its base, size and device; false when the address is not
/// the host runtime's (a plain host pointer).
struct allocation_info {
  void* base = nullptr;
  std::size_t bytes = 0;
  int device = -1;
};

[[nodiscard]] bool find_allocation(const void* address, allocation_info& info) noexcept;

/// Allocates and frees "device" memory on the current device (for ncclMemAlloc).
[[nodiscard]] void* allocate_device_memory(std::size_t bytes) noexcept;
[[nodiscard]] bool free_device_memory(void* address) noexcept;

}  // namespace spark_comm::host
