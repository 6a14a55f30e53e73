// SPDX-License-Identifier: AGPL-3.0-only
// A job of rank processes that meet each other and report to us.
#pragma once

#include "bench_options.hpp"
#include "rank_launcher.hpp"
#include "rank_report.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::app {

/// Hears the reports of ranks, but for those that the job itself acts on.
using report_handler = std::function<void(int rank, const rank_report& report)>;
/// Hears what the ranks write to stdout and stderr, already prefixed with their number.
using chatter_handler = std::function<void(const std::string& line)>;

/// Variables for rank `rank`: its place in the world, and what lets the ranks run side by side.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> rank_environment(
    const job_options& options, int rank, std::string_view address);

/// Starts `options.ranks` processes of `command` (program and arguments) and returns when all have
/// ended well. The head starts first, on a port of its own choice; the others when it says which.
///
/// Throws: failure with the text of the rank that failed first and its exit code.
void run_rank_job(const job_options& options,
                  const std::vector<std::string>& command,
                  const report_handler& on_report,
                  const chatter_handler& on_chatter);

/// The file of the running program.
[[nodiscard]] std::string own_program();

}  // namespace spark_comm::app
