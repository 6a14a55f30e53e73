// SPDX-License-Identifier: AGPL-3.0-only
// When does a communicator count as failed, and whose fault is it? A pure function of what was
// seen.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/signature.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace spark_comm {

/// How long an operation may take. Two clocks, because one that waits behind others is not stuck. A
/// start is not recorded on the device, which would cost as much again as the end: an operation
/// runs from when it is the first of its stream that has not ended.
struct operation_limits {
  static constexpr duration none = duration::max();

  duration queued = none;   ///< From submission to start.
  duration running = none;  ///< From start to end.
};

/// An operation that has not ended yet.
struct watched_operation {
  operation_record record;
  time_point submitted_at;
  std::optional<time_point> started_at;
  operation_limits limits;
};

/// How a peer's connection stands.
enum class peer_connection : std::uint8_t {
  open,    ///< As far as is known.
  left,    ///< It said farewell.
  closed,  ///< It ended without a word.
};

/// What is known of a peer.
struct peer_observation {
  int rank = -1;
  peer_connection connection = peer_connection::open;
  std::string close_reason;
  time_point last_heard;
  std::uint64_t last_sequence = 0;          ///< Of its own count.
  std::uint64_t collectives_submitted = 0;  ///< Ordinals, comparable with ours.
  std::uint64_t collectives_completed = 0;
  std::uint64_t sends_submitted = 0;     ///< Its sends to this rank.
  std::uint64_t receives_submitted = 0;  ///< Its receives from this rank.
  std::optional<failure_notice> failure;
  std::optional<divergence> parted;  ///< Where its operations and ours first differ.
};

/// An error that the native library or a kernel reported by itself, or for an operation that had
/// been launched.
struct native_failure {
  errc code = errc::internal;
  native_code native = {};
  std::optional<operation_record> operation = {};
  std::string text = {};        ///< Where the reporter knows more than its code.
  std::vector<int> peers = {};  ///< Ranks that the reporter names.
};

struct watch_observation {
  time_point now;
  std::span<const watched_operation> pending;  ///< In the order of submission.
  std::span<const peer_observation> peers;     ///< Without this rank.
  std::optional<native_failure> native;
  duration silence_limit = std::chrono::seconds{5};
};

/// The communicator is to be called failed.
struct watch_verdict {
  errc code = errc::internal;
  std::string text;
  std::vector<int> peers;  ///< Ranks that are missing, lost or behind.
  std::optional<operation_record> operation;
  std::optional<duration> limit;  ///< For `timed_out`: the one that ran out.
  native_code native;
  bool was_announced = false;  ///< A peer said it to all; there is no need to say it again.
};

/// The verdict as an exception, with what else is known of the communicator in `context`.
[[nodiscard]] SPARK_COMM_API error to_error(const watch_verdict& verdict,
                                            const error_context& context);

/// The verdict as what the peers are told.
[[nodiscard]] SPARK_COMM_API failure_notice to_notice(const watch_verdict& verdict, int rank);

/// The first of these that holds: the native library failed; a peer told of its failure; a peer is
/// gone; a peer left and something waits for it; a peer is silent; an operation ran out of time.
/// None: all is well.
[[nodiscard]] SPARK_COMM_API std::optional<watch_verdict> judge(const watch_observation& seen);

/// The next point in time at which an operation can run out of time; the clock's end if none.
[[nodiscard]] SPARK_COMM_API time_point
next_limit(std::span<const watched_operation> pending) noexcept;

/// When to look again: at the latest after `interval`, and every millisecond once a limit is near.
[[nodiscard]] SPARK_COMM_API time_point next_look(time_point now,
                                                  time_point limit,
                                                  duration interval) noexcept;

}  // namespace spark_comm
