// SPDX-License-Identifier: AGPL-3.0-only
#include "work.hpp"

#include "callback_scope.hpp"
#include "driver_abi.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "queue_item.hpp"
#include "stream.hpp"
#include "stream_state.hpp"
#include "task.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace spark_comm::host {

namespace {

// A query runs copies and fills up to this size itself: about 100 us.
constexpr std::size_t brief_bytes = std::size_t{1} << 20U;
// Pageable sources up to this size are copied aside.
constexpr std::size_t staged_bytes = std::size_t{1} << 20U;

template <typename T>
T* pointer(driver::device_ptr address) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): device addresses are host addresses
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

item_kind kind_for(std::size_t bytes) noexcept {
  return bytes <= brief_bytes ? item_kind::brief : item_kind::blocking;
}

bool is_pageable(driver::device_ptr address) noexcept {
  return process().memory.find(pointer<void>(address)).base == nullptr;
}

task copy(driver::device_ptr to, driver::device_ptr from, std::size_t bytes) {
  std::memmove(pointer<void>(to), pointer<void>(from), bytes);
  co_return;
}

task copy_staged(driver::device_ptr to, std::shared_ptr<const std::vector<std::byte>> staged) {
  std::memcpy(pointer<void>(to), staged->data(), staged->size());
  co_return;
}

task fill(driver::device_ptr to, unsigned char value, std::size_t count) {
  std::memset(pointer<void>(to), value, count);
  co_return;
}

task fill_words(driver::device_ptr to, std::uint32_t value, std::size_t count) {
  std::fill_n(pointer<std::uint32_t>(to), count, value);
  co_return;
}

task write(driver::device_ptr to, std::uint32_t value) {
  // Release: whoever reads the word with acquire sees all earlier work of the stream.
  std::atomic_ref<std::uint32_t>{*pointer<std::uint32_t>(to)}.store(value,
                                                                    std::memory_order_release);
  co_return;
}

task call_back(driver::host_function function, void* user_data) {
  const callback_scope scope;
  function(user_data);
  co_return;
}

queue_item make_copy(driver::device_ptr to, driver::device_ptr from, std::size_t bytes) {
  return {.make = [=] { return copy(to, from, bytes); }, .kind = kind_for(bytes)};
}

}  // namespace

driver::result submit_copy(const stream_ptr& target,
                           driver::device_ptr to,
                           driver::device_ptr from,
                           std::size_t bytes) {
  const bool waits_for_target = is_pageable(to);
  const bool waits_for_source = is_pageable(from);
  if (is_capturing(target) || (!waits_for_target && !waits_for_source)) {
    return submit(target, make_copy(to, from, bytes));
  }
  if (!waits_for_target && bytes <= staged_bytes) {
    const auto* begin = pointer<const std::byte>(from);
    auto staged = std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
    target->push({.make = [to, staged = std::move(staged)] { return copy_staged(to, staged); },
                  .kind = item_kind::brief});
    return driver::success;
  }
  target->wait(target->push(make_copy(to, from, bytes)));
  return driver::success;
}

queue_item make_fill(driver::device_ptr to, unsigned char value, std::size_t count) {
  return {.make = [=] { return fill(to, value, count); }, .kind = kind_for(count)};
}

queue_item make_fill_words(driver::device_ptr to, std::uint32_t value, std::size_t count) {
  return {.make = [=] { return fill_words(to, value, count); },
          .kind = kind_for(count * sizeof(value))};
}

queue_item make_write(driver::device_ptr to, std::uint32_t value) {
  return {.make = [=] { return write(to, value); }, .kind = item_kind::brief};
}

queue_item make_callback(driver::host_function function, void* user_data) {
  return {.make = [=] { return call_back(function, user_data); }, .kind = item_kind::blocking};
}

}  // namespace spark_comm::host
