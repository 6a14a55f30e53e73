// SPDX-License-Identifier: AGPL-3.0-only
// Queueing and driving: the part of a stream that runs on the threads of the program.
#include "stream.hpp"

#include "backoff.hpp"
#include "capture.hpp"
#include "context.hpp"
#include "driver_abi.hpp"
#include "memory.hpp"
#include "process.hpp"
#include "queue_item.hpp"
#include "stream_state.hpp"
#include "wake_signal.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

namespace spark_comm::host {

std::uint64_t stream::push(queue_item item) {
  std::uint64_t position = 0;
  {
    const std::lock_guard lock{queue_mutex_};
    if (!has_worker_) {
      start_worker();
    }
    queue_.push_back(std::move(item));
    // Sequentially consistent, as worker_sleeps_ below: either the worker sees the item before it
    // goes to sleep, or it is seen sleeping here and woken.
    position = submitted_.fetch_add(1, std::memory_order_seq_cst) + 1;
  }
  if (worker_sleeps_.load(std::memory_order_seq_cst)) {
    worker_wake_.notify();
  }
  return position;
}

// Takes the item in front and makes its task; false when there is none that this mode may run.
bool stream::start_next(drive_mode mode) noexcept {
  queue_item item;
  {
    const std::lock_guard lock{queue_mutex_};
    if (queue_.empty()) {
      return false;
    }
    if (mode == drive_mode::brief && queue_.front().kind == item_kind::blocking) {
      worker_wake_.notify();
      return false;
    }
    item = std::move(queue_.front());
    queue_.pop_front();
  }
  running_.emplace();
  running_->item = std::move(item);
  running_->work = running_->item.make();
  return true;
}

drive_result stream::drive(std::uint64_t position, drive_mode mode) noexcept {
  if (completed() >= position) {
    return drive_result::reached;
  }
  // Acquire and, below, release: the right to drive hands over running_.
  if (is_driven_.exchange(true, std::memory_order_acquire)) {
    return drive_result::busy;
  }
  drive_result result = drive_result::reached;
  while (completed() < position) {
    const bool has_item = running_.has_value() || start_next(mode);
    if (!has_item || (mode == drive_mode::brief && running_->item.kind == item_kind::blocking) ||
        !running_->work.advance()) {
      result = drive_result::pending;
      break;
    }
    running_.reset();
    // Release: publishes what the item wrote.
    completed_.fetch_add(1, std::memory_order_release);
    process().progress.notify();
  }
  is_driven_.store(false, std::memory_order_release);
  return result;
}

void stream::wait(std::uint64_t position) noexcept {
  // Sequentially consistent: the worker steps back as soon as it sees a synchronizer.
  synchronizers_.fetch_add(1, std::memory_order_seq_cst);
  wake_signal& progress = process().progress;
  backoff patience;
  std::uint64_t before = completed();
  for (;;) {
    const std::uint32_t seen = progress.epoch();
    if (drive(position, drive_mode::full) == drive_result::reached || completed() >= position) {
      break;
    }
    if (completed() != before) {
      before = completed();
      patience.reset();
    }
    patience.pause(progress, seen);
  }
  if (synchronizers_.fetch_sub(1, std::memory_order_seq_cst) == 1 && !is_idle()) {
    worker_wake_.notify();
  }
}

driver::result submit(const stream_ptr& target, queue_item item) {
  if (is_capturing(target)) {
    return capture_work(target, {.work = std::move(item), .after = {}, .then = {}});
  }
  target->push(std::move(item));
  return driver::success;
}

stream_ptr find_stream(void* handle) noexcept {
  constexpr std::uintptr_t legacy_handle = 1;  // CU_STREAM_LEGACY
  if (handle != nullptr && reinterpret_cast<std::uintptr_t>(handle) != legacy_handle) {
    return process().streams.find(handle);
  }
  int device = -1;
  if (require_context(device) != driver::success) {
    return nullptr;
  }
  try {
    return default_stream_of(*find_device(device), device);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool enqueue(const stream_ptr& target, task_factory make) {
  return submit(target, {.make = std::move(make), .kind = item_kind::brief}) == driver::success;
}

bool is_capturing(const stream_ptr& target) noexcept {
  // Acquire: pairs with the stores under the capture lock.
  return target->capture_state().load(std::memory_order_acquire) != driver::capture_status::none;
}

int device_of(const stream_ptr& target) noexcept {
  return target->device();
}

bool help(const stream_ptr& target) noexcept {
  return target->drive(target->submitted(), drive_mode::brief) == drive_result::reached;
}

}  // namespace spark_comm::host
