// SPDX-License-Identifier: AGPL-3.0-only
// Time as the library sees it: one monotonic clock that tests can replace, and deadlines on it.
#pragma once

#include <spark_comm/core/export.hpp>

#include <chrono>

namespace spark_comm {

using time_point = std::chrono::steady_clock::time_point;
using duration = std::chrono::nanoseconds;

/// A monotonic clock. Tests pass one of their own, so that no decision needs a sleep to be tested.
class SPARK_COMM_API time_source {
 public:
  time_source() = default;
  time_source(const time_source&) = delete;
  time_source& operator=(const time_source&) = delete;
  time_source(time_source&&) = delete;
  time_source& operator=(time_source&&) = delete;
  virtual ~time_source() = default;

  [[nodiscard]] virtual time_point now() const noexcept = 0;
};

/// The machine's steady clock.
/// Threads: any.
[[nodiscard]] SPARK_COMM_API const time_source& steady_time() noexcept;

/// A point in time by which something has to be over, and the span it was made from (for messages).
class deadline {
 public:
  /// A span too long for the clock is cut to the clock's end.
  [[nodiscard]] static deadline after(duration span,
                                      const time_source& time = steady_time()) noexcept {
    return deadline{span, time};
  }

  [[nodiscard]] time_point at() const noexcept { return at_; }

  /// The span that was asked for.
  [[nodiscard]] duration span() const noexcept { return span_; }

  [[nodiscard]] bool has_passed() const noexcept { return time_->now() >= at_; }

  /// Zero once it has passed.
  [[nodiscard]] duration remaining() const noexcept {
    const time_point now = time_->now();
    return now >= at_ ? duration::zero() : std::chrono::duration_cast<duration>(at_ - now);
  }

 private:
  deadline(duration span, const time_source& time) noexcept
      : time_(&time), span_(span < duration::zero() ? duration::zero() : span) {
    const time_point now = time.now();
    // Before the clock's zero no span is too long, and the subtraction would overflow.
    const bool is_past_the_end = now > time_point{} && span_ > time_point::max() - now;
    at_ = is_past_the_end ? time_point::max() : now + span_;
  }

  const time_source* time_;
  duration span_;
  time_point at_;
};

}  // namespace spark_comm
