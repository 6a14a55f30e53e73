// SPDX-License-Identifier: AGPL-3.0-only
// What must agree between ranks about an operation, how that is folded into one number, and what
// the differences are called.
//
// The rule, in lanes. Collectives form one lane for all ranks: the n-th collective of one rank is
// the n-th of every other, in one order, whatever the streams. Sends and receives form two lanes
// for every pair of ranks: the n-th send from a to b is the n-th receive on b from a. Lanes are
// independent of each other, because a program is free to interleave them differently on different
// ranks; where that ends in a deadlock, the deadline says so. On the lane of a pair only what the
// two sides must share is compared: a send in a group may well meet a receive outside of one.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/supervise/operation.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spark_comm {

/// How two ranks can differ.
enum class mismatch_kind : std::uint8_t {
  operation = 1,    ///< Another kind of operation.
  dtype,            ///< Another element type (opaque bytes and uint8 travel alike and agree).
  count,            ///< Another number of elements.
  reduction,        ///< Another reduce operation.
  root,             ///< Another root.
  path,             ///< Another way, so that the ranks' tables differ.
  grouping,         ///< In a group on one rank only, or groups of different size.
  capture,          ///< Captured into a graph on one rank only.
  unevenness,       ///< With counts on one rank, without on the other.
  order,            ///< Two neighbours the other way round.
  skipped_by_peer,  ///< The peer goes on with what comes next here.
  skipped_here,     ///< This rank goes on with what comes next on the peer.
  unlocated,        ///< They differ, at a place that neither remembers any more.
};

inline constexpr mismatch_kind all_mismatch_kinds[] = {
    mismatch_kind::operation,
    mismatch_kind::dtype,
    mismatch_kind::count,
    mismatch_kind::reduction,
    mismatch_kind::root,
    mismatch_kind::path,
    mismatch_kind::grouping,
    mismatch_kind::capture,
    mismatch_kind::unevenness,
    mismatch_kind::order,
    mismatch_kind::skipped_by_peer,
    mismatch_kind::skipped_here,
    mismatch_kind::unlocated,
};

[[nodiscard]] SPARK_COMM_API std::string_view name_of(mismatch_kind kind) noexcept;

/// The first thing that two ranks must share and do not; none when the operations agree. A send and
/// a receive agree when they fit together.
[[nodiscard]] SPARK_COMM_API std::optional<mismatch_kind> difference(
    const operation_record& mine, const operation_record& theirs) noexcept;

/// The signature of a lane on which nothing has happened.
inline constexpr std::uint64_t empty_signature = 0x5350415257495245U;

/// The signature after one more operation. Equal on two ranks exactly when (but for a chance of
/// 2^-64) `difference` finds none in any operation so far.
[[nodiscard]] SPARK_COMM_API std::uint64_t fold(std::uint64_t signature,
                                                const operation_record& record) noexcept;

/// Where two ranks part.
struct divergence {
  mismatch_kind kind = mismatch_kind::unlocated;
  std::uint64_t ordinal = 0;  ///< On the lane, from 1; for `unlocated`, the last that agreed.
  operation_record mine;
  operation_record theirs;
};

/// "count differs: all_reduce #7 (...) here, all_reduce #7 (...) on rank 1".
[[nodiscard]] SPARK_COMM_API std::string describe(const divergence& found, int peer);

}  // namespace spark_comm
