// SPDX-License-Identifier: AGPL-3.0-only
// launch: starts a program as the ranks of one job: all of them on this machine, or this machine's
// share of them, and says what to run on the others.
#pragma once

#include "exit_code.hpp"
#include "rank_launcher.hpp"

#include <spark_comm/core/time.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spark_comm::app {

struct launch_options {
  int ranks = 2;  ///< On each node.
  int nodes = 1;
  /// Which node this is; unset: none is started, and the command of each is printed.
  std::optional<int> node_rank = {};
  std::string head = {};      ///< Where rank 0 listens, when there are several nodes.
  std::string key_file = {};  ///< For SPARK_COMM_KEY_FILE of the ranks; empty: as it is set here.
  bool share_gpu = false;
  /// Limit of the whole run; zero: none but the program's own.
  duration limit = duration::zero();
  std::vector<std::string> program = {};  ///< With its arguments.
};

/// Throws: failure (usage) when there is no program, no rank, or something between nodes is
/// missing.
void validate(const launch_options& options);

/// What rank `rank` of all nodes' finds in its environment, meeting the others at `address`.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> launch_environment(
    const launch_options& options, int rank, const std::string& address);

/// The command line of every node, each under a comment on what it starts. Keys go by their file.
[[nodiscard]] std::string node_commands(const launch_options& options);

/// `argument` as a POSIX shell reads it back.
[[nodiscard]] std::string shell_quoted(std::string_view argument);

/// Runs this node's ranks, their lines prefixed, and ends all of them when one fails. Other nodes
/// learn of it from their own ranks.
[[nodiscard]] launch_result launch_ranks(const launch_options& options);

/// The same, and says on stderr what went wrong; or prints the commands of the nodes.
/// Returns the first failing rank's exit code (128 + signal), or 0.
[[nodiscard]] int run_launch(const launch_options& options);

}  // namespace spark_comm::app
