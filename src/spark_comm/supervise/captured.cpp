// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/captured.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/watch_policy.hpp>

#include <mutex>
#include <optional>
#include <vector>

namespace spark_comm {

void captured_operations::add(const captured_operation& operation) {
  const std::scoped_lock lock{mutex_};
  followed_.push_back({.operation = operation, .running_since = std::nullopt});
}

void captured_operations::poll(time_point now) {
  const std::scoped_lock lock{mutex_};
  for (followed& each : followed_) {
    const completion_probe& probe = each.operation.probe;
    if (probe.poll(probe.context, probe.token).state == probe_state::pending) {
      each.running_since = each.running_since.value_or(now);
    } else {
      each.running_since.reset();
    }
  }
}

std::vector<watched_operation> captured_operations::running() const {
  const std::scoped_lock lock{mutex_};
  std::vector<watched_operation> found;
  for (const followed& each : followed_) {
    if (each.running_since) {
      found.push_back(
          {.record = each.operation.record,
           .submitted_at = *each.running_since,
           .started_at = each.running_since,
           .limits = {.queued = operation_limits::none, .running = each.operation.limit}});
    }
  }
  return found;
}

}  // namespace spark_comm
