// SPDX-License-Identifier: AGPL-3.0-only
// The mismatch check itself: this rank's lane against what a peer says about the one that must
// match. Pure; whoever calls it decides when.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>
#include <spark_comm/supervise/signature_lane.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace spark_comm {

/// What a rank tells about a lane: how far it is, and its last operations.
struct lane_report {
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;                     ///< Ordinal of the last that was seen to end.
  std::uint64_t base_signature = empty_signature;  ///< Before the first of `tail`.
  std::vector<operation_record> tail;              ///< The last ones, in order; may be empty.

  /// The number of operations before the first of `tail`.
  [[nodiscard]] std::uint64_t base_ordinal() const noexcept { return submitted - tail.size(); }
};

/// The report of a lane, with at most `tail_length` operations; fewer when the ring is overtaken
/// while it is read.
[[nodiscard]] SPARK_COMM_API lane_report report_of(const signature_lane& lane,
                                                   std::size_t tail_length);

/// A stretch of a lane from `first` on, for a peer that asks; ends before what the ring has lost.
[[nodiscard]] SPARK_COMM_API lane_report history_of(const signature_lane& lane,
                                                    std::uint64_t first,
                                                    std::size_t length);

/// How two lanes stand.
enum class lane_relation : std::uint8_t {
  level,        ///< Equal and equally far.
  peer_behind,  ///< Equal as far as the peer is.
  peer_ahead,   ///< Equal as far as this rank is.
  unknown,      ///< The common part cannot be compared now (the peer is too far ahead or behind).
  parted,       ///< They differ at a known place.
  parted_somewhere,  ///< They differ before what the report shows; its history would tell where.
};

inline constexpr lane_relation all_lane_relations[] = {
    lane_relation::level,
    lane_relation::peer_behind,
    lane_relation::peer_ahead,
    lane_relation::unknown,
    lane_relation::parted,
    lane_relation::parted_somewhere,
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(lane_relation relation) noexcept;

/// The outcome of a comparison.
struct lane_verdict {
  lane_relation relation = lane_relation::unknown;
  std::uint64_t matched = 0;        ///< Operations known to agree.
  std::optional<divergence> found;  ///< For `parted`.
};

/// An operation by its ordinal; none outside of what is known.
using lane_lookup = std::function<std::optional<operation_record>(std::uint64_t ordinal)>;

/// Two lanes that must match, as far as they are known.
struct lane_pair {
  lane_lookup mine;
  lane_lookup theirs;
  bool is_peer_shorter = false;  ///< The peer has issued fewer.
};

/// The first difference in `(from, to]`, explained by what comes after it; none when there is none,
/// or when a side lacks an operation before it.
[[nodiscard]] SPARK_COMM_API std::optional<divergence> locate(const lane_pair& both,
                                                              std::uint64_t from,
                                                              std::uint64_t to);

/// Compares. `matched` is what earlier verdicts found to agree.
[[nodiscard]] SPARK_COMM_API lane_verdict compare(const signature_lane& mine,
                                                  const lane_report& theirs,
                                                  std::uint64_t matched);

}  // namespace spark_comm
