// SPDX-License-Identifier: AGPL-3.0-only
// The operations that graphs hold: submitted once, run whenever their graph is launched, which
// nobody tells us. A run that goes on for too long is seen all the same.
#pragma once

#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <mutex>
#include <optional>
#include <vector>

namespace spark_comm {

/// What the watchdog needs to follow an operation through the runs of its graph. The probe answers
/// `pending` while the run that it saw at the last question goes on, else `done`: so a run is known
/// from the second look at it, and two runs are never taken for one.
struct captured_operation {
  operation_record record;
  duration limit = operation_limits::none;  ///< For one run.
  completion_probe probe;
};

/// Threads: `add` by the thread that submits, the rest by the watchdog.
class SPARK_COMM_API captured_operations {
 public:
  /// Cost: a lock and perhaps an allocation; capturing is not the hot path.
  void add(const captured_operation& operation);

  /// Asks all.
  void poll(time_point now);

  /// Those that run, each since it was first seen to, in the order of submission.
  [[nodiscard]] std::vector<watched_operation> running() const;

 private:
  struct followed {
    captured_operation operation;
    std::optional<time_point> running_since;
  };

  mutable std::mutex mutex_;
  std::vector<followed> followed_;
};

}  // namespace spark_comm
