// SPDX-License-Identifier: AGPL-3.0-only
// From arguments to an exit code.
#pragma once

#include "exit_code.hpp"

#include <string>
#include <vector>

namespace spark_comm::app {

/// Does what the arguments (without the program's name) ask for. Errors are one line on stderr, or,
/// in a rank process, a report to the process that started it.
[[nodiscard]] exit_code run(const std::vector<std::string>& arguments) noexcept;

}  // namespace spark_comm::app
