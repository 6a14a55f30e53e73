// SPDX-License-Identifier: AGPL-3.0-only
// How the tool was called.
#pragma once

#include <string>
#include <vector>

namespace spark_comm::app {

struct invocation {
  std::vector<std::string> command_line;  ///< As typed.
  /// The program that ranks run, with the arguments that make it a rank of the same job.
  std::vector<std::string> rank_command;
};

}  // namespace spark_comm::app
