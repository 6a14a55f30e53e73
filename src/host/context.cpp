// SPDX-License-Identifier: AGPL-3.0-only
#include "context.hpp"

#include "devices.hpp"
#include "driver_abi.hpp"
#include "process.hpp"
#include "stream.hpp"
#include "stream_state.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

namespace spark_comm::host {

namespace {

constexpr std::uintptr_t context_base = (std::uintptr_t{0x50} << 48U) + 0x1000;
constexpr std::uintptr_t context_step = 16;

// A thread's contexts, the current one on top. Trivial, so that it outlives the thread's other
// objects: a program's static objects free memory and streams after those of the main thread have
// been destroyed.
struct context_stack {
  static constexpr std::size_t capacity = 256;

  std::array<int, capacity> devices;
  std::size_t depth;
};

static_assert(std::is_trivially_destructible_v<context_stack>);

context_stack& contexts() noexcept {
  thread_local constinit context_stack stack{};
  return stack;
}

}  // namespace

driver::context context_of(int device) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an opaque number, never dereferenced
  return reinterpret_cast<driver::context>(context_base +
                                           static_cast<std::uintptr_t>(device) * context_step);
}

int device_of_context(driver::context handle) noexcept {
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - context_base;
  if (offset % context_step != 0 || offset / context_step >= process().devices.size()) {
    return -1;
  }
  return static_cast<int>(offset / context_step);
}

int live_device_of(driver::context handle) noexcept {
  const int device = device_of_context(handle);
  // Relaxed: a count, nothing is published by it.
  const bool is_live =
      device >= 0 && find_device(device)->retained.load(std::memory_order_relaxed) > 0;
  return is_live ? device : -1;
}

device_entry* find_device(int ordinal) noexcept {
  const device_list& devices = process().devices;
  if (ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices.size()) {
    return nullptr;
  }
  return devices[static_cast<std::size_t>(ordinal)].get();
}

int top_of_contexts() noexcept {
  const context_stack& stack = contexts();
  return stack.depth == 0 ? -1 : stack.devices[stack.depth - 1];
}

void push_context(int device) {
  context_stack& stack = contexts();
  if (stack.depth == context_stack::capacity) {
    throw std::bad_alloc{};
  }
  stack.devices[stack.depth++] = device;
}

int pop_context() noexcept {
  const int top = top_of_contexts();
  if (top >= 0) {
    --contexts().depth;
  }
  return top;
}

void replace_context(int device) {
  pop_context();
  if (device >= 0) {
    push_context(device);
  }
}

driver::result require_context(int& device) noexcept {
  device = top_of_contexts();
  const device_entry* entry = find_device(device);
  if (entry == nullptr) {
    return driver::invalid_context;
  }
  // Relaxed: a count, nothing is published by it.
  return entry->retained.load(std::memory_order_relaxed) > 0 ? driver::success
                                                             : driver::context_is_destroyed;
}

stream_ptr default_stream_of(device_entry& entry, int ordinal) {
  std::call_once(entry.default_stream_made, [&entry, ordinal] {
    entry.default_stream = std::make_shared<stream>(ordinal, 0U, true);
  });
  return entry.default_stream;
}

int current_device() noexcept {
  int device = -1;
  return require_context(device) == driver::success ? device : -1;
}

}  // namespace spark_comm::host
