// SPDX-License-Identifier: AGPL-3.0-only
// Which stream uses which set of buffers. Plain bookkeeping.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace spark_comm::detail {

/// Slots in the order in which streams first ask, which is the same on all ranks because they issue
/// the same operations in the same order. By the stream's number: its handle may come again for a
/// new stream on one rank and not on another. A stream keeps its slot to the end, also when it is
/// destroyed, because a graph may hold it; those that come when all slots are taken go by NCCL.
class stream_slots {
 public:
  explicit stream_slots(std::size_t most) : most_(most) { streams_.reserve(most); }

  /// The slot of the stream with this number; none when all belong to others.
  [[nodiscard]] std::optional<std::size_t> of(std::uint64_t id) {
    const auto at = std::ranges::find(streams_, id);
    if (at == streams_.end()) {
      if (streams_.size() == most_) {
        return std::nullopt;
      }
      streams_.push_back(id);
      return streams_.size() - 1;
    }
    return static_cast<std::size_t>(at - streams_.begin());
  }

 private:
  std::size_t most_;
  std::vector<std::uint64_t> streams_;
};

}  // namespace spark_comm::detail
