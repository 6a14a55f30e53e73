// SPDX-License-Identifier: AGPL-3.0-only
// A stream: its queue, the right to drive it, its worker, and its part in a capture.
#pragma once

#include "capture.hpp"
#include "driver_abi.hpp"
#include "queue_item.hpp"
#include "stream.hpp"
#include "task.hpp"
#include "wake_signal.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

namespace spark_comm::host {

enum class drive_mode : std::uint8_t {
  brief,  ///< leaves blocking items to the worker
  full,   ///< runs everything
};

enum class drive_result : std::uint8_t {
  reached,  ///< the position was reached
  pending,  ///< the item in front waits for something
  busy,     ///< another thread drives
};

/// Items are numbered from 1 in the order of submission; a stream "has reached" position n when n
/// items are finished.
/// Threads: any.
class stream : public std::enable_shared_from_this<stream> {
 public:
  stream(int device, unsigned int flags, bool is_default) noexcept
      : id_(next_id()), device_(device), flags_(flags), is_default_(is_default) {}

  const std::uint64_t id_;

  [[nodiscard]] int device() const noexcept { return device_; }

  /// Of this stream alone in the process, unlike its handle, which may come again.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

  [[nodiscard]] unsigned int flags() const noexcept { return flags_; }

  /// Whether it is the null stream of its device.
  [[nodiscard]] bool is_default() const noexcept { return is_default_; }

  /// Queues an item, whatever the state of a capture; returns its position.
  std::uint64_t push(queue_item item);

  [[nodiscard]] std::uint64_t submitted() const noexcept {
    // Acquire: pairs with push, so that an observer who counts an item finds it in the queue.
    return submitted_.load(std::memory_order_acquire);
  }

  [[nodiscard]] std::uint64_t completed() const noexcept {
    // Acquire: what a finished item wrote is visible to whoever sees it finished.
    return completed_.load(std::memory_order_acquire);
  }

  /// Runs items until `position` is reached, something has to be waited for, or another thread
  /// drives. Never waits itself, but for what blocking items do.
  drive_result drive(std::uint64_t position, drive_mode mode) noexcept;

  /// Waits until `position` is reached, and helps.
  void wait(std::uint64_t position) noexcept;

  /// The worker ends once the queue is empty. Later pushes start another one.
  void close() noexcept;

  /// Makes a sleeping worker look at the queue.
  void wake_worker() noexcept { worker_wake_.notify(); }

  /// Guarded by the process's capture lock.
  capture_membership& membership() noexcept { return membership_; }

  /// Whether the stream is captured, without the lock; set under it.
  std::atomic<driver::capture_status>& capture_state() noexcept { return capture_state_; }

 private:
  static std::uint64_t next_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;  // a number, orders nothing
  }

  // The item that is under way. The factory outlives its task: a coroutine made by a lambda refers
  // to the lambda.
  struct running_item {
    queue_item item;
    task work;
  };

  // Since when the worker had nothing to do, and who did the work before.
  struct worker_rest {
    std::chrono::steady_clock::time_point since;
    bool after_others;
  };

  bool start_next(drive_mode mode) noexcept;
  void start_worker();
  void run_worker() noexcept;
  bool worker_may_end() noexcept;
  void worker_rests(std::uint32_t seen, const worker_rest& rest) noexcept;

  [[nodiscard]] bool is_idle() const noexcept { return completed() == submitted(); }

  // Sequentially consistent: see wait.
  [[nodiscard]] bool may_rest() const noexcept {
    return is_idle() || synchronizers_.load(std::memory_order_seq_cst) > 0;
  }

  const int device_;
  const unsigned int flags_;
  const bool is_default_;

  std::mutex queue_mutex_;  // guards queue_, has_worker_, is_closing_
  std::deque<queue_item> queue_;
  bool has_worker_ = false;
  bool is_closing_ = false;
  std::atomic<std::uint64_t> submitted_ = 0;
  std::atomic<std::uint64_t> completed_ = 0;

  std::atomic<bool> is_driven_ = false;  // the right to drive; guards running_
  std::optional<running_item> running_;

  wake_signal worker_wake_;
  std::atomic<bool> worker_sleeps_ = false;
  std::atomic<int> synchronizers_ = 0;

  capture_membership membership_;
  std::atomic<driver::capture_status> capture_state_ = driver::capture_status::none;
};

/// Queues an item, or writes it down when the stream is captured.
[[nodiscard]] driver::result submit(const stream_ptr& target, queue_item item);

}  // namespace spark_comm::host
