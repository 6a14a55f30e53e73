// SPDX-License-Identifier: AGPL-3.0-only
// Counters of one communicator for whoever watches it from outside, and their text in Prometheus's
// exposition format. Filled by the watchdog from what it sees anyway: nothing here is on the way of
// an operation.
#pragma once

#include <spark_comm/core/error.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm {

/// Upper bounds of the latency histogram, in seconds; a last bucket holds the rest.
inline constexpr std::array<double, 10> latency_bounds = {
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0};

/// A peer as the metrics show it.
struct peer_progress {
  int rank = -1;
  double silent_seconds = 0;
  std::uint64_t collectives_submitted = 0;
  std::uint64_t collectives_completed = 0;
  bool is_connected = true;
};

/// What is true at one moment.
struct metrics_view {
  std::size_t pending = 0;                  ///< Operations that have not been seen to end.
  double oldest_pending_seconds = 0;        ///< Age of the oldest of them; 0 without.
  std::uint64_t collectives_submitted = 0;  ///< Of this rank, comparable with the peers'.
  std::uint64_t collectives_completed = 0;
  std::vector<peer_progress> peers;
};

/// Threads: any, one lock; held for as long as a text of a few kilobytes takes to make.
class SPARK_COMM_API communicator_metrics {
 public:
  explicit communicator_metrics(flight_identity who);

  /// An operation was seen to end. `took` counts from its submission to when the watchdog saw the
  /// end, so it may be late by a heartbeat interval and is never early.
  void ended(const operation_record& record, duration took);

  /// The communicator failed, or an operation of it.
  void failed(errc code);

  /// A round of the watchdog, which is also a heartbeat to every peer when one is due.
  void looked(metrics_view view);

  /// Supervision ended: `spark_comm_up` goes to 0.
  void stopped();

  /// Everything, in Prometheus's text format 0.0.4. Counters begin with the communicator's
  /// generation, so they may go back to zero when it reconnects.
  [[nodiscard]] std::string exposition() const;

 private:
  struct operation_counts {
    std::uint64_t bytes = 0;
    std::array<std::uint64_t, latency_bounds.size() + 1> buckets{};  ///< Not summed up.
    double seconds = 0;
  };

  flight_identity who_;
  mutable std::mutex mutex_;
  std::map<std::pair<operation_kind, path_kind>, operation_counts> operations_;
  std::map<errc, std::uint64_t> failures_;
  metrics_view view_;
  std::uint64_t looks_ = 0;
  bool is_up_ = true;
};

}  // namespace spark_comm
