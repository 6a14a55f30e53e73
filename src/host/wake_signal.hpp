// SPDX-License-Identifier: AGPL-3.0-only
// A counter that threads can sleep on until it moves: costs the notifier two atomic operations when
// nobody sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace spark_comm::host {

/// Threads: any. A notification after `epoch()` was read is never missed by `wait`.
class wake_signal {
 public:
  [[nodiscard]] std::uint32_t epoch() const noexcept {
    // Acquire: what was written before the notification is seen after it.
    return epoch_.load(std::memory_order_acquire);
  }

  void notify() noexcept {
    // Sequentially consistent on both sides: either the notifier sees the sleeper, or the sleeper
    // sees the new epoch and does not sleep.
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      wake_all();
    }
  }

  /// Sleeps until the epoch differs from `seen`, or for `limit`; may return early.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit) noexcept;

  /// Sleeps until the epoch differs from `seen`; may return early.
  void wait(std::uint32_t seen) noexcept;

 private:
  void wake_all() noexcept;

  std::atomic<std::uint32_t> epoch_ = 0;
  std::atomic<std::uint32_t> sleepers_ = 0;
};

}  // namespace spark_comm::host
