// SPDX-License-Identifier: AGPL-3.0-only
// A rank as an argument, so that it cannot be mistaken for a count.
#pragma once

#include <compare>

namespace spark_comm {

/// A rank of a communicator, 0 to world size - 1.
struct rank_id {
  int value;

  constexpr explicit rank_id(int rank) noexcept : value(rank) {}

  friend constexpr auto operator<=>(rank_id, rank_id) = default;
};

}  // namespace spark_comm
