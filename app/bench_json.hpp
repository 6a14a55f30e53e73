// SPDX-License-Identifier: AGPL-3.0-only
// The result of `bench` for programs.
#pragma once

#include "bench_options.hpp"
#include "bench_result.hpp"
#include "machine.hpp"
#include "rank_report.hpp"

#include <string>
#include <vector>

namespace spark_comm::app {

/// Version of the format below; rises when a field changes its meaning or goes away.
inline constexpr int bench_schema_version = 1;

/// Everything that the table says, and what is needed to repeat it.
struct bench_record {
  std::vector<std::string> command_line;
  std::string date;  ///< UTC.
  machine_info machine;
  ready_report job;
};

/// A JSON document. A wrong result carries `wrong` and null in the place of times and bandwidths; a
/// bus bandwidth that does not exist is null.
[[nodiscard]] std::string bench_json(const bench_options& options,
                                     const bench_record& record,
                                     const bench_collector& results);

/// Writes it beside the file first, so that no half file is ever there.
/// Throws: failure (failed) naming the file and the reason.
void write_file(const std::string& path, const std::string& content);

}  // namespace spark_comm::app
