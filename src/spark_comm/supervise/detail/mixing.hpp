// SPDX-License-Identifier: AGPL-3.0-only
// A fast mixing function for check words and rolling signatures. It finds accidents and
// disagreements; it does not keep out an adversary, and need not: the connections are trusted.
#pragma once

#include <bit>
#include <cstdint>

namespace spark_comm::detail {

/// Folds `value` into `state`. Every bit of the result depends on every bit of both after two
/// rounds.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t state, std::uint64_t value) noexcept {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio
  state = (state ^ value) * odd;
  return std::rotl(state, 29) + odd;
}

}  // namespace spark_comm::detail
