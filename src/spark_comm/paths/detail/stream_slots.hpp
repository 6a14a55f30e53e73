// SPDX-License-Identifier: AGPL-3.0-only
// Which stream uses which set of buffers. Plain bookkeeping.
#pragma once

#include <spark_comm/cuda/abi.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace spark_comm::detail {

/// Slots in the order in which streams first ask, which is the same on all ranks because they issue
/// the same operations in the same order. A stream keeps its slot to the end, so one that is
/// destroyed and made anew takes the old one's slot only where its handle comes out the same: a
/// program keeps its streams as long as the communicator, as it does for NCCL's graphs.
class stream_slots {
 public:
  explicit stream_slots(std::size_t most) : most_(most) { streams_.reserve(most); }

  /// The slot of `s`; none when all belong to others.
  [[nodiscard]] std::optional<std::size_t> of(cuda::abi::stream s) {
    const auto at = std::ranges::find(streams_, s);
    if (at == streams_.end()) {
      if (streams_.size() == most_) {
        return std::nullopt;
      }
      streams_.push_back(s);
      return streams_.size() - 1;
    }
    return static_cast<std::size_t>(at - streams_.begin());
  }

 private:
  std::size_t most_;
  std::vector<cuda::abi::stream> streams_;
};

}  // namespace spark_comm::detail
