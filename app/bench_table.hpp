// SPDX-License-Identifier: AGPL-3.0-only
// The table of `bench` as text: nccl-tests' columns, with units written out.
#pragma once

#include "bench_options.hpp"
#include "bench_result.hpp"
#include "machine.hpp"
#include "rank_report.hpp"

#include <string>

namespace spark_comm::app {

/// Lines that say what was measured on what, and the heads of the columns.
[[nodiscard]] std::string table_header(const bench_options& options,
                                       const machine_info& machine,
                                       const ready_report& job);

/// One line. A wrong result shows how many elements are wrong and no time or bandwidth.
[[nodiscard]] std::string table_row(const bench_options& options, const row_result& row);

/// The verdict over all rows, and over the link where its speed was stated.
[[nodiscard]] std::string table_footer(const bench_options& options,
                                       const bench_collector& results);

}  // namespace spark_comm::app
