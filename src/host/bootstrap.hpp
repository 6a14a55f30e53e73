// SPDX-License-Identifier: AGPL-3.0-only
// How ranks meet in a segment, and exchange small messages there afterwards.
#pragma once

#include "segment.hpp"
#include "segment_layout.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace spark_comm::host::nccl {

/// Who arrives.
struct arrival {
  int rank = 0;
  int world_size = 0;
  int device = 0;
};

/// Takes a rank's seat and waits for all others.
///
/// On return the whole segment is mapped and this rank's staging is in memory.
/// Returns invalid_usage when the world size differs from the first arriver's or the rank is taken:
/// the bootstrap is then closed, and, as with NCCL, the other ranks are not told and wait until
/// they are aborted. internal_error when `is_aborted` was set meanwhile.
[[nodiscard]] int join_segment(segment& shared,
                               std::uint64_t token,
                               const arrival& self,
                               const std::atomic<bool>& is_aborted);

/// Rounds of small messages from everybody to everybody. All ranks make the same rounds.
class rank_exchange {
 public:
  rank_exchange(std::byte* base, segment_layout layout, int rank) noexcept
      : base_(base), layout_(layout), rank_(rank) {}

  /// One payload of every rank, in rank order; `mine` is at most `exchange_bytes`.
  /// internal_error when `is_aborted` was set before everybody was there.
  [[nodiscard]] int run(std::span<const std::byte> mine,
                        std::vector<std::byte>& all,
                        const std::atomic<bool>& is_aborted);

 private:
  [[nodiscard]] exchange_lines& lines(std::size_t rank) const noexcept;

  std::byte* base_;
  segment_layout layout_;
  int rank_;
  std::mutex mutex_;  // one round at a time
  std::uint64_t rounds_ = 0;
};

}  // namespace spark_comm::host::nccl
