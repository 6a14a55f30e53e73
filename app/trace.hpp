// SPDX-License-Identifier: AGPL-3.0-only
// trace: reads the flight records that ranks left behind, and says in plain words what went wrong.
#pragma once

#include "exit_code.hpp"

#include <spark_comm/supervise/trace.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace spark_comm::app {

struct trace_options {
  std::string directory;      ///< Where the .flight files are.
  std::string perfetto_file;  ///< Empty: none is written.
  std::size_t last = 10;      ///< Operations of each rank to list.
};

/// The report of one communicator: findings, then the last operations of every rank.
/// Unit: times in microseconds after the submission.
[[nodiscard]] std::string trace_text(const flight_trace& trace, std::size_t last);

/// Throws: failure when there is no record in the directory or the file cannot be written.
[[nodiscard]] exit_code run_trace(const trace_options& options);

}  // namespace spark_comm::app
