// SPDX-License-Identifier: AGPL-3.0-only
// Brings the metrics out: as a file for node exporter's textfile collector, and over HTTP on
// loopback. On a thread of its own, so that a slow disk or a slow reader delays nobody.
#pragma once

#include <spark_comm/core/diagnostics.hpp>
#include <spark_comm/core/export.hpp>
#include <spark_comm/core/time.hpp>
#include <spark_comm/supervise/flight_record.hpp>
#include <spark_comm/supervise/metrics.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spark_comm {

struct metrics_settings {
  std::string file = {};  ///< Written anew at every interval; empty: none.
  int port = 0;           ///< On 127.0.0.1; 0: none.
  duration interval = std::chrono::seconds{1};
};

/// Whole at any time for a reader: each text is written beside the file and moved over it.
/// Throws: system_failed with the path.
SPARK_COMM_API void write_metrics_file(const std::string& path, const std::string& text);

/// "spark_comm-tp-rank0.prom" within `directory`.
[[nodiscard]] SPARK_COMM_API std::string metrics_file_of(const std::string& directory,
                                                         const flight_identity& who);

/// The answer to a request's first line: the metrics for `GET /metrics` and `GET /`, else 404, or
/// 405 for another method.
[[nodiscard]] SPARK_COMM_API std::string http_answer(std::string_view request_line,
                                                     const communicator_metrics& metrics);

/// Runs while it lives.
class SPARK_COMM_API metrics_exporter {
 public:
  /// `metrics` must outlive it. Throws: system_failed when the file cannot be written or the port
  /// is taken.
  metrics_exporter(const communicator_metrics& metrics,
                   metrics_settings settings,
                   diagnostics log = {});

  metrics_exporter(const metrics_exporter&) = delete;
  metrics_exporter& operator=(const metrics_exporter&) = delete;
  metrics_exporter(metrics_exporter&&) = delete;
  metrics_exporter& operator=(metrics_exporter&&) = delete;

  ~metrics_exporter();

  /// Ends the thread and writes the file a last time.
  void stop() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace spark_comm
