// SPDX-License-Identifier: AGPL-3.0-only
// What is known of an operation while it is being launched.
#pragma once

#include <spark_comm/core/time.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace spark_comm::detail {

/// An operation between its record and the end of its launch.
struct followed_operation {
  std::uint64_t flight_index = 0;
  time_point submitted_at;
  std::optional<std::size_t> mark = {};  ///< Its own in `capture_marks`; while it is captured only.
};

}  // namespace spark_comm::detail
