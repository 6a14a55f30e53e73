// SPDX-License-Identifier: AGPL-3.0-only
// launch: starts a program as the ranks of one job on this machine.
#pragma once

#include "exit_code.hpp"
#include "rank_launcher.hpp"

#include <spark_comm/core/time.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace spark_comm::app {

struct launch_options {
  int ranks = 2;
  bool share_gpu = false;
  /// Limit of the whole run; zero: none but the program's own.
  duration limit = duration::zero();
  std::vector<std::string> program;  ///< With its arguments.
};

/// Throws: failure (usage) when there is no program or no rank.
void validate(const launch_options& options);

/// What rank `rank` finds in its environment; the ranks meet through the file `meeting`.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> launch_environment(
    const launch_options& options, int rank, const std::string& meeting);

/// Runs the ranks, their lines prefixed, and ends all when one fails.
[[nodiscard]] launch_result launch_ranks(const launch_options& options);

/// The same, and says on stderr what went wrong.
/// Returns the first failing rank's exit code (128 + signal), or 0.
[[nodiscard]] int run_launch(const launch_options& options);

}  // namespace spark_comm::app
