// SPDX-License-Identifier: AGPL-3.0-only
#include <spark_comm/core/diagnostics.hpp>
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
#include <spark_comm/supervise/supervisor.hpp>
#include <spark_comm/supervise/watch_policy.hpp>
#include <spark_comm/supervise/watchdog.hpp>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace spark_comm {
namespace {

bool wants_metrics(const supervise_options& options) {
  return options.enabled == supervision::on &&
         (!options.metrics_directory.empty() || options.metrics_port != 0);
}

std::unique_ptr<communicator_metrics> make_metrics(const flight_identity& who,
                                                   const supervise_options& options) {
  return wants_metrics(options) ? std::make_unique<communicator_metrics>(who) : nullptr;
}

std::unique_ptr<metrics_exporter> make_exporter(const communicator_metrics* metrics,
                                                const flight_identity& who,
                                                const supervise_options& options,
                                                const diagnostics& log) {
  if (metrics == nullptr) {
    return nullptr;
  }
  const bool has_file = !options.metrics_directory.empty();
  return std::make_unique<metrics_exporter>(
      *metrics,
      metrics_settings{
          .file = has_file ? metrics_file_of(options.metrics_directory, who) : std::string{},
          .port = options.metrics_port == 0 ? 0 : options.metrics_port + who.rank},
      log);
}

}  // namespace

supervisor::supervisor(const flight_identity& who,
                       rendezvous::session* line,
                       const supervise_options& options,
                       watchdog_hooks hooks,
                       const diagnostics& log,
                       const time_source& time)
    : options_(options),
      record_(flight_record::create(who, options.record_directory, options.record_capacity)),
      log_(who.world_size),
      metrics_(make_metrics(who, options)),
      exporter_(make_exporter(metrics_.get(), who, options, log)),
      line_(line == nullptr
                ? nullptr
                : std::make_unique<lifeline>(
                      *line,
                      log_,
                      lifeline_settings{.generation = who.generation,
                                        .check = options.check,
                                        .heartbeat_interval = options.heartbeat_interval},
                      [this] { watchdog_.wake(); },
                      log,
                      time)),
      watchdog_({.rank = who.rank,
                 .table = &table_,
                 .captured = &captured_,
                 .record = &record_,
                 .log = &log_,
                 .line = line_.get(),
                 .metrics = metrics_.get()},
                options,
                std::move(hooks),
                log,
                time) {}

void supervisor::start() {
  if (options_.enabled == supervision::off) {
    return;
  }
  if (line_) {
    line_->start();
  }
  watchdog_.start();
}

std::uint64_t supervisor::note_submission(operation_record& record, time_point now) noexcept {
  const std::uint64_t signature = log_.append(record);
  return record_.submitted(record, now, signature);
}

bool supervisor::follow(const in_flight_operation& operation) noexcept {
  if (options_.enabled == supervision::off || !table_.push(operation)) {
    return false;
  }
  if (table_.is_crowded()) {
    watchdog_.wake();
  }
  return true;
}

agreement supervisor::agree(const operation_record& record, const deadline& until) {
  const bool is_alone = !line_ || options_.enabled == supervision::off;
  if (is_alone || is_point_to_point(record.kind) || record.ordinal == 0) {
    // A send may rightly be issued long before its receive: the background check sees to them.
    return agreement::agreed;
  }
  return line_->agree(record.ordinal, until);
}

void supervisor::announce_failure(const failure_notice& notice) noexcept {
  if (line_ && options_.enabled == supervision::on) {
    line_->announce_failure(notice);
  }
}

void supervisor::say_farewell() noexcept {
  if (line_ && options_.enabled == supervision::on) {
    line_->say_farewell();
  }
}

void supervisor::stop(flight_end how) noexcept {
  if (std::exchange(is_stopped_, true)) {
    return;
  }
  watchdog_.stop();
  if (line_) {
    line_->hang_up();
  }
  record_.ended(how);
  if (metrics_) {
    metrics_->stopped();
    exporter_->stop();
  }
}

std::vector<peer_observation> supervisor::peers() const {
  return line_ ? line_->peers() : std::vector<peer_observation>{};
}

}  // namespace spark_comm
