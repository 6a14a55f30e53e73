// SPDX-License-Identifier: AGPL-3.0-only
// One launch of a communicator runs at a time, in the order of issue even across streams.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <mutex>

namespace spark_comm::host::nccl {

/// Threads: any.
class launch_gate {
 public:
  using ticket = std::uint64_t;

  /// A launch out of a graph has no place in the order of issue: its stream alone orders it.
  static constexpr ticket no_ticket = 0;

  /// The next place in the order.
  [[nodiscard]] ticket issue() {
    const std::scoped_lock lock{mutex_};
    order_.push_back(++last_);
    return last_;
  }

  /// Whether the holder may run now; it then must `leave`.
  [[nodiscard]] bool try_enter(ticket mine) {
    const std::scoped_lock lock{mutex_};
    if (is_busy_ || (mine != no_ticket && order_.front() != mine)) {
      return false;
    }
    is_busy_ = true;
    return true;
  }

  void leave() noexcept {
    const std::scoped_lock lock{mutex_};
    is_busy_ = false;
  }

  /// Gives a place up: after the run, or when the launch never comes to run.
  void give_up(ticket mine) noexcept {
    const std::scoped_lock lock{mutex_};
    std::erase(order_, mine);
  }

  /// Nothing runs and nothing waits to run.
  [[nodiscard]] bool is_idle() noexcept {
    const std::scoped_lock lock{mutex_};
    return !is_busy_ && order_.empty();
  }

 private:
  std::mutex mutex_;
  std::deque<ticket> order_;
  ticket last_ = no_ticket;
  bool is_busy_ = false;
};

}  // namespace spark_comm::host::nccl
