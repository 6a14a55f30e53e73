// SPDX-License-Identifier: AGPL-3.0-only
// Looks after one communicator: asks how far operations are, keeps the lines to the other ranks
// going, and calls the communicator failed when the watch policy says so. Thin: all it decides is
// when to look.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/captured.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/lifeline.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/ticker.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace spark_comm {

/// What the watchdog asks and tells, all on its own thread. None may call `watchdog::stop`.
struct watchdog_hooks {
  /// Called once, with the first failure. Required.
  std::function<void(const watch_verdict&)> on_failure;

  /// The native library's own error, if it has one. Must not block.
  std::function<std::optional<native_failure>()> native_health;

  /// Before the first look: to choose the device, and a capture mode in which asking is harmless.
  /// Must not throw.
  std::function<void()> on_thread_start;
};

/// What it looks at. All must outlive it.
struct watchdog_view {
  int rank = 0;
  in_flight_table* table = nullptr;
  captured_operations* captured = nullptr;
  flight_record* record = nullptr;
  signature_log* log = nullptr;
  lifeline* line = nullptr;                 ///< Null in a world of one.
  communicator_metrics* metrics = nullptr;  ///< Null where nobody looks at them.
};

/// Threads: `wake`, `hold_probes` and `resume_probes` any; the rest one at a time.
class SPARK_COMM_API watchdog {
 public:
  watchdog(const watchdog_view& view,
           supervise_options options,
           watchdog_hooks hooks,
           diagnostics log = {},
           const time_source& time = steady_time());

  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  watchdog(watchdog&&) = delete;
  watchdog& operator=(watchdog&&) = delete;

  ~watchdog() { stop(); }

  /// Looks from now on, on a thread of its own. Who: once.
  void start();

  void wake() noexcept { ticker_.wake(); }

  /// Ends the thread and lets go of all operations. Bounded by one look, so by the native calls in
  /// `native_health` and the probes. Idempotent.
  void stop() noexcept;

  /// Nothing is asked of the device until `resume_probes`, because a question from another thread
  /// can spoil a stream capture; operations do not run out of time meanwhile, the lifeline goes on.
  /// Calls nest. Returns when a question under way is over.
  void hold_probes() noexcept;
  void resume_probes() noexcept;

  /// One look; gives the time of the next. What the thread does; tests call it themselves.
  time_point step(time_point now) noexcept;

 private:
  time_point look(time_point now);
  void ask(time_point now);
  [[nodiscard]] std::vector<watched_operation> pending() const;
  void note(const in_flight_change& change);
  void fail(const watch_verdict& verdict, time_point now);
  void show(time_point now, const std::vector<peer_observation>& peers) const;

  watchdog_view view_;
  supervise_options options_;
  watchdog_hooks hooks_;
  diagnostics log_;
  const time_source* time_;

  std::mutex asking_;     // held while the device is asked; never on the way of an operation
  int holds_ = 0;         // guarded by `asking_`
  bool is_held_ = false;  // as this look found it

  std::optional<native_failure> native_;
  bool has_failed_ = false;
  ticker ticker_;  // last: its thread ends before anything else goes
};

}  // namespace spark_comm
