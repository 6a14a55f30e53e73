// SPDX-License-Identifier: AGPL-3.0-only
// How long to wait before the next attempt to connect: 10 ms at first, half as much again each
// time, 500 ms at most. Only the deadline ends the attempts, never their number.
#pragma once

#include <spark_comm/core/time.hpp>

#include <algorithm>
#include <chrono>

namespace spark_comm::rendezvous::detail {

inline constexpr duration shortest_pause = std::chrono::milliseconds{10};
inline constexpr duration longest_pause = std::chrono::milliseconds{500};

/// The pause after one of `previous`; zero starts anew.
[[nodiscard]] constexpr duration next_pause(duration previous) noexcept {
  return std::clamp(previous + previous / 2, shortest_pause, longest_pause);
}

}  // namespace spark_comm::rendezvous::detail
