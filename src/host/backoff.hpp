// SPDX-License-Identifier: AGPL-3.0-only
// How a thread waits for something that it has to poll: briefly at full speed, then giving way,
// then asleep in growing steps, so that a long wait costs about a hundredth of a core.
#pragma once

#include "wake_signal.hpp"

#include <chrono>
#include <cstdint>

namespace spark_comm::host {

enum class wait_kind : std::uint8_t {
  spin,   ///< Stay on the core: the answer is a cache line away.
  yield,  ///< Let another runnable thread go first: with more ranks than cores, that is the peer.
  nap,    ///< Sleep for a while, or until something of this process moves.
};

struct wait_step {
  wait_kind kind = wait_kind::spin;
  std::chrono::nanoseconds nap{0};

  friend bool operator==(const wait_step&, const wait_step&) = default;
};

inline constexpr std::chrono::nanoseconds spin_span = std::chrono::microseconds{20};
inline constexpr std::chrono::nanoseconds yield_span = std::chrono::microseconds{300};
inline constexpr std::chrono::nanoseconds shortest_nap = std::chrono::microseconds{20};
inline constexpr std::chrono::nanoseconds longest_nap = std::chrono::microseconds{500};

/// What to do after having waited for so long without progress. A nap is a quarter of the time
/// waited, so the wait is at most that much longer than it had to be.
[[nodiscard]] constexpr wait_step step_after(std::chrono::nanoseconds waited) noexcept {
  if (waited < spin_span) {
    return {.kind = wait_kind::spin};
  }
  if (waited < yield_span) {
    return {.kind = wait_kind::yield};
  }
  const std::chrono::nanoseconds share = waited / 4;
  return {.kind = wait_kind::nap,
          .nap = share < shortest_nap  ? shortest_nap
                 : share > longest_nap ? longest_nap
                                       : share};
}

/// One wait: knows since when there was no progress.
class backoff {
 public:
  using clock = std::chrono::steady_clock;

  explicit backoff(clock::time_point now = clock::now()) noexcept : since_(now) {}

  void reset(clock::time_point now = clock::now()) noexcept { since_ = now; }

  [[nodiscard]] wait_step next(clock::time_point now) const noexcept {
    return step_after(now - since_);
  }

  /// Takes the next step. A nap ends early when `wake` moved on from `seen`.
  void pause(wake_signal& wake, std::uint32_t seen) const noexcept;

 private:
  clock::time_point since_;
};

}  // namespace spark_comm::host
