// SPDX-License-Identifier: AGPL-3.0-only
// A bounded wait made of polls: what streams and events have in common.
#pragma once

#include <spark_comm/core/progress.hpp>
#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace spark_comm::cuda::detail {

/// How often to ask without sleeping; a driver query takes about a microsecond, and decode-size
/// work is over within this many.
inline constexpr int polls_before_sleeping = 64;
inline constexpr std::chrono::microseconds first_sleep{10};
inline constexpr std::chrono::microseconds longest_sleep{1000};

/// Asks `poll` until it says done or `limit` has passed: spins briefly, then sleeps in steps that
/// double up to 1 ms and never reach past the deadline. Asks at least once, and once more after the
/// deadline, so that work which ended during the last sleep counts as done.
template <typename Poll>
[[nodiscard]] wait_result wait_polling(const Poll& poll, duration limit) {
  const deadline until = deadline::after(limit);
  duration pause = first_sleep;
  for (int asked = 0;; ++asked) {
    // The clock is read before the question: "pending" then holds for the deadline itself.
    const bool is_last = until.has_passed();
    if (poll() == progress::done) {
      return wait_result::done;
    }
    if (is_last) {
      return wait_result::timed_out;
    }
    if (asked >= polls_before_sleeping) {
      std::this_thread::sleep_for(std::min(pause, until.remaining()));
      pause = std::min<duration>(2 * pause, longest_sleep);
    }
  }
}

}  // namespace spark_comm::cuda::detail
