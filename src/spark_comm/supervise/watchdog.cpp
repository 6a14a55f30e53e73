// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/error.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/captured.hpp>
#include <spark_comm/supervise/in_flight.hpp>
#include <spark_comm/supervise/lifeline.hpp>
#include <spark_comm/supervise/metrics.hpp>
#include <spark_comm/supervise/operation.hpp>
#include <spark_comm/supervise/options.hpp>
#include <spark_comm/supervise/signature_log.hpp>
#include <spark_comm/supervise/watch_policy.hpp>
#include <spark_comm/supervise/watchdog.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace spark_comm {

watchdog::watchdog(const watchdog_view& view,
                   supervise_options options,
                   watchdog_hooks hooks,
                   diagnostics log,
                   const time_source& time)
    : view_(view),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      log_(std::move(log)),
      time_(&time) {}

void watchdog::start() {
  ticker_.start([this] { return step(time_->now()); }, hooks_.on_thread_start);
}

void watchdog::stop() noexcept {
  ticker_.stop();
  view_.table->clear();
}

void watchdog::hold_probes() noexcept {
  const std::scoped_lock lock{asking_};
  ++holds_;
}

void watchdog::resume_probes() noexcept {
  {
    const std::scoped_lock lock{asking_};
    --holds_;
  }
  wake();
}

time_point watchdog::step(time_point now) noexcept {
  try {
    return look(now);
  } catch (const std::exception& failure) {
    log_.report(failure, "watchdog");
  }
  return now + options_.heartbeat_interval;
}

time_point watchdog::look(time_point now) {
  ask(now);
  const time_point next_beat =
      view_.line != nullptr ? view_.line->tick(now) : now + options_.heartbeat_interval;
  const std::vector<peer_observation> peers =
      view_.line != nullptr ? view_.line->peers() : std::vector<peer_observation>{};
  show(now, peers);
  if (has_failed_) {
    return next_beat;
  }
  const std::vector<watched_operation> pending = this->pending();
  const auto verdict = judge({.now = now,
                              .pending = pending,
                              .peers = peers,
                              .native = native_,
                              .silence_limit = options_.silence_limit});
  if (verdict) {
    fail(*verdict, now);
    return next_beat;
  }
  return std::min(next_beat, next_look(now, next_limit(pending), options_.heartbeat_interval));
}

std::vector<watched_operation> watchdog::pending() const {
  std::vector<watched_operation> all = view_.captured->running();
  if (!is_held_) {  // else nobody can say that an operation of the table has not ended
    const auto launched = view_.table->pending();
    all.insert(all.end(), launched.begin(), launched.end());
  }
  return all;
}

void watchdog::ask(time_point now) {
  view_.captured->poll(now);  // reads memory, and so can spoil no capture
  const std::scoped_lock lock{asking_};
  is_held_ = holds_ > 0;
  if (is_held_) {
    return;
  }
  view_.table->poll(now, [&](const in_flight_change& change) { note(change); });
  if (!native_ && hooks_.native_health) {
    native_ = hooks_.native_health();
  }
}

void watchdog::note(const in_flight_change& change) {
  const in_flight_operation& operation = change.operation;
  switch (change.result.state) {
    case probe_state::pending: view_.record->started(operation.flight_index, change.at); break;
    case probe_state::done:
      view_.record->completed(operation.flight_index, change.at);
      view_.log->complete(operation.record);
      if (view_.metrics != nullptr) {
        view_.metrics->ended(operation.record, change.at - operation.submitted_at);
      }
      break;
    case probe_state::failed:
      view_.record->failed(operation.flight_index,
                           change.at,
                           change.result.code,
                           change.result.domain,
                           change.result.native_number);
      if (!native_) {
        native_code native;
        native.domain = change.result.domain;
        native.number = change.result.native_number;
        native_ = native_failure{
            .code = change.result.code, .native = std::move(native), .operation = operation.record};
      }
      break;
  }
}

void watchdog::fail(const watch_verdict& verdict, time_point now) {
  has_failed_ = true;
  if (view_.metrics != nullptr) {
    view_.metrics->failed(verdict.code);
  }
  const auto pending = view_.table->pending();
  for (std::size_t place = 0; place < pending.size(); ++place) {
    if (verdict.operation && pending[place].record.sequence == verdict.operation->sequence) {
      view_.record->failed(view_.table->flight_index_of(place),
                           now,
                           verdict.code,
                           verdict.native.domain,
                           verdict.native.number);
    }
  }
  if (view_.line != nullptr && !verdict.was_announced) {
    view_.line->announce_failure(to_notice(verdict, view_.rank));
  }
  hooks_.on_failure(verdict);
}

void watchdog::show(time_point now, const std::vector<peer_observation>& peers) const {
  if (view_.metrics == nullptr) {
    return;
  }
  const auto seconds_since = [&](time_point then) {
    return std::max(std::chrono::duration<double>(now - then).count(), 0.0);
  };
  const auto pending = view_.table->pending();
  const signature_lane& collectives = view_.log->lane(lane_kind::collectives, 0);
  metrics_view seen{
      .pending = pending.size(),
      .oldest_pending_seconds = pending.empty() ? 0 : seconds_since(pending.front().submitted_at),
      .collectives_submitted = collectives.submitted(),
      .collectives_completed = collectives.completed(),
      .peers = {}};
  for (const peer_observation& peer : peers) {
    seen.peers.push_back({.rank = peer.rank,
                          .silent_seconds = seconds_since(peer.last_heard),
                          .collectives_submitted = peer.collectives_submitted,
                          .collectives_completed = peer.collectives_completed,
                          .is_connected = peer.connection == peer_connection::open});
  }
  view_.metrics->looked(std::move(seen));
}

}  // namespace spark_comm
