// SPDX-License-Identifier: AGPL-3.0-only
// All lanes of one rank on one communicator.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature_lane.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace spark_comm {

/// Which lane of a pair, or the collectives' lane.
enum class lane_kind : std::uint8_t {
  collectives = 0,  ///< Every rank.
  outbound = 1,     ///< Sends from this rank to the peer.
  inbound = 2,      ///< Receives on this rank from the peer.
};

inline constexpr lane_kind all_lane_kinds[] = {
    lane_kind::collectives, lane_kind::outbound, lane_kind::inbound};

/// The lane on the peer that must match: its receives match our sends.
[[nodiscard]] constexpr lane_kind counterpart(lane_kind kind) noexcept {
  switch (kind) {
    case lane_kind::collectives: return lane_kind::collectives;
    case lane_kind::outbound:    return lane_kind::inbound;
    case lane_kind::inbound:     return lane_kind::outbound;
  }
  return kind;
}

/// The lane on which an operation is compared.
[[nodiscard]] constexpr lane_kind lane_of(operation_kind kind) noexcept {
  if (kind == operation_kind::send) {
    return lane_kind::outbound;
  }
  return kind == operation_kind::recv ? lane_kind::inbound : lane_kind::collectives;
}

/// Threads: one appends, one completes, any reads.
class SPARK_COMM_API signature_log {
 public:
  static constexpr std::size_t collective_capacity = 8192;
  static constexpr std::size_t pair_capacity = 512;

  explicit signature_log(int world_size);

  /// Files the operation under its lane, sets its `ordinal`, and returns the lane's signature. The
  /// record of a group's end must follow its members; its count is set to the number of collectives
  /// among them, and without any it is on no lane (ordinal 0).
  /// Who: the submitting thread, for every operation, empty ones included.
  /// Cost: about twenty stores; no lock, no allocation.
  std::uint64_t append(operation_record& record) noexcept;

  /// Notes on the operation's lane that it was seen to end. Who: the watchdog.
  void complete(const operation_record& record) noexcept;

  /// `peer` is ignored for the collectives' lane.
  [[nodiscard]] const signature_lane& lane(lane_kind kind, int peer) const noexcept;

  /// The last sequence number given to `append`. Threads: any.
  [[nodiscard]] std::uint64_t last_sequence() const noexcept {
    return last_sequence_.load(std::memory_order_relaxed);  // a number to show, orders nothing
  }

  [[nodiscard]] int world_size() const noexcept { return static_cast<int>(outbound_.size()); }

 private:
  [[nodiscard]] signature_lane& lane_for(const operation_record& record) noexcept;

  signature_lane collectives_{collective_capacity};
  std::deque<signature_lane> outbound_;  // by peer; a deque, because lanes cannot be moved
  std::deque<signature_lane> inbound_;
  std::atomic<std::uint64_t> last_sequence_{0};
  std::uint64_t grouped_collectives_ = 0;  // since the last group's end
};

}  // namespace spark_comm
