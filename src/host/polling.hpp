// SPDX-License-Identifier: AGPL-3.0-only
// Waiting in a calling thread (never on the path of stream work): for peers during init and
// exchanges, for tasks to end during teardown.
#pragma once

#include <chrono>
#include <thread>

namespace spark_comm::host::nccl {

/// Waits until `is_ready()` or `is_stopped()`; true when ready. Yields first, then sleeps for
/// longer and longer, at most a millisecond: as NCCL's own, the wait has no deadline but its stop.
template <typename Ready, typename Stopped>
[[nodiscard]] bool poll_until(Ready is_ready, Stopped is_stopped) {
  constexpr int yields = 200;
  constexpr std::chrono::microseconds longest{1000};
  std::chrono::microseconds pause{10};
  for (int round = 0;; ++round) {
    if (is_ready()) {
      return true;
    }
    if (is_stopped()) {
      return false;
    }
    if (round < yields) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = pause * 2 < longest ? pause * 2 : longest;
  }
}

}  // namespace spark_comm::host::nccl
