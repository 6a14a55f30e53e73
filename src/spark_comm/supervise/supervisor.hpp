// SPDX-License-Identifier: AGPL-3.0-only
// Everything that looks after one generation of a communicator, in one object: what the
// communicator calls on the way of an operation, and what it is told when something fails.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/rendezvous/session.hpp>
#include <spark_comm/supervise/captured.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/heartbeat.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/lifeline.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/metrics_exporter.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/watchdog.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace spark_comm {

/// Owns the flight record, the signatures, the table of operations in flight, the lifeline, the
/// metrics and the watchdog, and ties them together.
///
/// Threads: `note_submission` and `follow` by the thread that submits; the rest any, one at a time.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which they may end
class SPARK_COMM_API supervisor {
 public:
  /// `line` is null in a world of one; it must outlive this object, which starts and stops it.
  /// Throws: system_failed when the flight record or the metrics' file cannot be made, or their
  /// port is taken.
  supervisor(const flight_identity& who,
             rendezvous::session* line,
             const supervise_options& options,
             watchdog_hooks hooks,
             const diagnostics& log = {},
             const time_source& time = steady_time());

  supervisor(const supervisor&) = delete;
  supervisor& operator=(const supervisor&) = delete;
  supervisor(supervisor&&) = delete;
  supervisor& operator=(supervisor&&) = delete;

  ~supervisor() { stop(); }

  /// Who: every rank, right after meeting, before the native init: peers' silence counts from here.
  /// Does nothing when supervision is off.
  void start();

  /// Writes the operation down, and gives it its ordinal. Before the launch, for every operation.
  /// Returns its place in the flight record.
  std::uint64_t note_submission(operation_record& record, time_point now) noexcept;

  /// Follows a launched operation to its end. False when it is not followed (supervision is off,
  /// the table is full).
  bool follow(const in_flight_operation& operation) noexcept;

  /// Follows a captured operation through the runs of its graph.
  void follow_captured(const captured_operation& operation) { captured_.add(operation); }

  /// For `mismatch_check::strict`, between `note_submission` and the launch of a collective.
  [[nodiscard]] agreement agree(const operation_record& record, const deadline& until);

  /// This rank failed or aborted, by other means than the watchdog's verdict: tells the peers.
  void announce_failure(const failure_notice& notice) noexcept;

  /// This rank closes in order: tells the peers.
  void say_farewell() noexcept;

  /// Around a stream capture: see `watchdog::hold_probes`.
  void hold_probes() noexcept { watchdog_.hold_probes(); }

  void resume_probes() noexcept { watchdog_.resume_probes(); }

  /// Ends the thread, stops the session, lets go of all operations, and says in the flight record
  /// how it ended. The first call counts. Who: not from a hook.
  void stop(flight_end how = flight_end::aborted) noexcept;

  /// What is known of the other ranks.
  [[nodiscard]] std::vector<peer_observation> peers() const;

  [[nodiscard]] const flight_record& record() const noexcept { return record_; }

 private:
  supervise_options options_;
  flight_record record_;
  signature_log log_;
  in_flight_table table_;
  captured_operations captured_;
  std::unique_ptr<communicator_metrics> metrics_;  // null where nobody looks at them
  std::unique_ptr<metrics_exporter> exporter_;
  std::unique_ptr<lifeline> line_;
  watchdog watchdog_;  // last: its thread ends before what it looks at goes
  bool is_stopped_ = false;
};

}  // namespace spark_comm
